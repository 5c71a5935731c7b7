from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from varifold._core.block cimport Vocabulary
from varifold._core.model cimport Model
from varifold._core.scaler cimport Scaler
from varifold._core.space cimport Space
from varifold._core.view cimport View


cdef class Binding:
    cdef Vocabulary vocabulary
    cdef int32_t* slot          # vocabulary id -> slot, 0 unknown
    cdef int32_t* source        # slot -> vocabulary id, 0 none
    cdef Py_ssize_t ids, slots
    cdef int64_t evictions

    cdef int fit(self, Space space) except -1


cdef class Engine:
    cdef readonly Space space
    cdef readonly Scaler scaler
    cdef readonly Model model
    cdef readonly int64_t step
    cdef readonly list labels
    cdef dict label_index
    cdef double* counts          # weight learned by label
    cdef readonly bint intercept
    cdef Py_ssize_t max_features
    cdef bint lightest
    cdef bint listens            # the model calls out to Python and may meet exceptions there
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
    cdef double* out             # scores by label
    cdef double* probs
    cdef Py_ssize_t out_room

    cdef int reserve(self, Py_ssize_t n) except -1
    cdef int fit_places(self) except -1
    cdef list gather(self, dict x)
    cdef int append(self, int32_t slot, double value) except -1
    cdef int admit(self, list pending) except -1
    cdef int make_room(self, Py_ssize_t needed) except -1
    cdef int drop(self, int32_t slot) except -1
    cdef int settle(self) except -1 with gil
    cdef void present(self, double w, bint commit, bint admitted) noexcept nogil
    cdef int add_label(self, object y) except -1
    cdef int hear(self) except -1
    cdef void learn_view(self, int y, double w) noexcept nogil
    cdef void note(self, int y, double w) noexcept nogil
    cdef int best(self) noexcept nogil
    cdef int answer(self) noexcept nogil
    cdef int decide(self) noexcept nogil
    cdef int _bind(self, Vocabulary vocabulary) except -1
    cdef int _admit_row(self, const int32_t* idx, const double* val, Py_ssize_t m) except -1 with gil
    cdef Py_ssize_t _gather_row(self, const int32_t* idx, const double* val, Py_ssize_t m) noexcept nogil
