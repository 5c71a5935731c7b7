from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from varifold._engine.binding cimport Binding
from varifold._engine.conformal cimport Conformal
from varifold._engine.vocabulary cimport Vocabulary
from varifold._engine.guard cimport Guard
from varifold._engine.model cimport Model
from varifold._engine.scaler cimport Scaler
from varifold._engine.space cimport Space
from varifold._engine.view cimport View


cdef class Intake(Guard):
    cdef readonly Space space
    cdef readonly Scaler scaler
    cdef readonly Model model
    cdef readonly Conformal conformal   # intervals or sets; None without
    cdef readonly int64_t step
    cdef readonly bint intercept
    cdef Py_ssize_t max_features
    cdef bint lightest
    cdef Binding binding
    cdef Py_ssize_t fitted       # slots that scaler and model have room for
    # scratch for one instance
    cdef View view
    cdef Py_ssize_t n            # gathered pairs, intercept not among them
    cdef Py_ssize_t room
    cdef int32_t* slots
    cdef int32_t* slots2
    cdef double* vals
    cdef double* vals2
    cdef double* scaled
    cdef uint64_t* marks         # for ordering, a bit a slot, all zeros between
    cdef int32_t* former         # slots of the dict gathered before, in its order: the next one often has the same keys
    cdef bint ordered            # the pairs are in slot order
    cdef bint admitted           # the instance may hold new slots
    cdef uint8_t* is_new
    cdef int32_t* indicator_columns          # columns of the indicators present
    cdef Py_ssize_t n_indicator_columns
    cdef int32_t* columns

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef int append(self, int32_t slot, double value) except -1
    cdef list gather(self, object given)
    cdef list gather_items(self, list items)
    cdef list gather_pair(self, PyObject* key, PyObject* value, list pending)
    cdef int bind(self, Vocabulary vocabulary) except -1
    cdef Py_ssize_t gather_row(self, const int32_t* idx, const double* val, Py_ssize_t m) noexcept nogil
    cdef void scale_robust(self, double w, bint commit) noexcept nogil
    cdef void present(self, double w, bint commit, bint admitted) noexcept nogil
