from varifold._core.model cimport BinaryRule
from varifold._core.view cimport View

cdef class LeaningRule(BinaryRule):
    cdef public bint lean
    cdef double* margin       # [problem]: score of the instance being learned, before it is learned
    cdef double* counts       # weight learned by class
    cdef Py_ssize_t room      # classes there is room for in both
    cdef double lead          # right answers of the margins less those of the commonest class, where they differ
    cdef double total         # weight learned
    cdef double reach         # summed size of the margins
    cdef double unit          # size of a sure margin: 1, or the mean size where that is larger
    cdef double pull          # how much the class shares count now

    cdef int fit(self, Py_ssize_t room) except -1
    cdef int best(self, double* of) noexcept nogil
    cdef inline double leaning(self, View* v, int label) noexcept nogil
