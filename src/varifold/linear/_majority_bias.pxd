from varifold._engine.model cimport Model
from varifold._engine.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class LeaningModel(Model):
    cdef readonly BinaryRule rule
    cdef double* margin       # [class]: scores of the instance being learned, before it is learned
    cdef double* counts       # weight learned by class
    cdef Py_ssize_t room      # classes there is room for in both
    cdef double lead          # right answers of the margins less those of the commonest class, where they differ
    cdef double total         # weight learned
    cdef double reach         # summed size of the margins
    cdef double pull          # what the lead makes of the class shares; 0 when too little to matter
    cdef double force         # the same in margins: times the size of a sure one

    cdef int fit(self, Py_ssize_t room) except -1
    cdef void press(self) noexcept nogil
    cdef inline int best(self, double* of) noexcept nogil
    cdef inline double leaning(self, View* v, int label) noexcept nogil
    cdef void compare(self, View* v, double* margin, int y, double w) noexcept nogil
