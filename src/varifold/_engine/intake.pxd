from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from varifold._engine.binding cimport Binding
from varifold._engine.block cimport Vocabulary
from varifold._engine.model cimport Model
from varifold._engine.scaler cimport Scaler
from varifold._engine.space cimport Space
from varifold._engine.view cimport View


cdef class Intake:
    cdef readonly Space space
    cdef readonly Scaler scaler
    cdef readonly Model model
    cdef readonly int64_t step
    cdef readonly bint intercept
    cdef Py_ssize_t max_features
    cdef bint lightest
    cdef Binding binding
    # scratch for one instance
    cdef View view
    cdef Py_ssize_t n            # gathered pairs, intercept not among them
    cdef Py_ssize_t room
    cdef int32_t* slots
    cdef int32_t* slots2
    cdef double* vals
    cdef double* vals2
    cdef double* scaled
    cdef double* dense           # for ordering pairs in a small space
    cdef uint64_t* marks         # for ordering rows of blocks
    cdef int32_t* places
    cdef bint ordered            # the pairs are in slot order
    cdef bint admitted           # the instance may hold fresh slots
    cdef uint8_t* fresh
    cdef int32_t* heads          # columns of the indicators present
    cdef Py_ssize_t n_heads
    cdef int32_t* columns

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef int fit_places(self) except -1
    cdef int append(self, int32_t slot, double value) except -1
    cdef list gather(self, object given)
    cdef int bind(self, Vocabulary vocabulary) except -1
    cdef Py_ssize_t gather_row(self, const int32_t* idx, const double* val, Py_ssize_t m) noexcept nogil
    cdef int admit(self, list pending) except -1
    cdef int admit_row(self, const int32_t* idx, const double* val, Py_ssize_t m) except -1 with gil
    cdef int make_room(self, Py_ssize_t needed) except -1
    cdef int drop(self, int32_t slot) except -1
    cdef int settle(self) except -1 with gil
    cdef void present(self, double w, bint commit, bint admitted) noexcept nogil
