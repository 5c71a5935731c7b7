from libc.stdint cimport int32_t

from varifold._engine.names.vocabulary cimport Vocabulary
from varifold._engine.names.space cimport Space


cdef class Binding:
    cdef Vocabulary vocabulary
    cdef int32_t* slot          # vocabulary id -> slot, 0 unknown
    cdef int32_t* source        # slot -> vocabulary id, 0 none
    cdef int32_t* column        # vocabulary id -> id of its column
    cdef int32_t* column_slot   # id of a column -> its slot, 0 unknown
    cdef int32_t* column_source # slot of a column -> its id, 0 none
    cdef Py_ssize_t ids, slots

    cdef int fit(self, Space space) except -1
    cdef int fit_column(self, Space space, int32_t i) except -1
    cdef void release(self, int32_t slot) noexcept
    cdef void release_column(self, int32_t slot) noexcept


cdef int32_t slot_of(Space space, Vocabulary vocabulary, int32_t i) except -2
