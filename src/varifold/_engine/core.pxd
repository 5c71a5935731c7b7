from libc.stdint cimport int32_t, int64_t

from varifold._engine.admission cimport Admission


cdef class Core(Admission):
    cdef bint calls_python       # the model calls Python code, which may raise

    cdef double weight_of(self, object w) except? -1.0
    cdef int check_weight(self, double w) except -1
    cdef object no_memory(self)
    cdef object no_memory_after(self, int64_t learned)
    cdef void mark_seen(self) noexcept nogil
    cdef int raise_pending(self) except -1 with gil
    cdef int impute_rows(self, Py_ssize_t n, const int64_t* ptr, const int32_t* idx, const double* val, values) except -1
    cdef int check_slot(self, Py_ssize_t slot) except -1
    cdef tuple common_parts(self)
    cdef int check_common(self, names, dict arrays) except -1
    cdef int take_common(self, names, dict arrays) except -1
    cdef int take_model(self, dict arrays) except -1
