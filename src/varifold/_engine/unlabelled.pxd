from libc.stdint cimport int32_t

from varifold._engine.block cimport Block
from varifold._engine.core cimport Core


cdef class UnlabelledEngine(Core):
    cdef int learn(self, object x, double w) except -1
    cdef void learn_view(self, double w) noexcept nogil
    cdef int learn_row(self, const int32_t* idx, const double* val, Py_ssize_t m, double w) except -1 nogil
    cdef int walk(self, Block block) except -1
    cdef int take(self, names, dict arrays) except -1
