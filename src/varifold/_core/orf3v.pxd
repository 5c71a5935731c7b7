from varifold._core.stumps cimport Stumps
from varifold._core.units cimport Unit
from varifold._core.view cimport View


cdef class ORF3VModel(Stumps):
    cdef readonly double alpha
    cdef readonly bint tempered
    cdef double* evidence              # [class] scratch

    cdef double* voting_row(self, View* v, Py_ssize_t i, Unit** owner) noexcept nogil
    cdef bint weigh(self, View* v, double* out) noexcept nogil
    cdef void judge(self, View* v, int y, double w) noexcept nogil
    cdef double lesson(self, double* row, int y) noexcept nogil
    cdef void adjust(self, int y, double w) noexcept nogil
