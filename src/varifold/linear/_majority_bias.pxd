from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class MajorityBias(Model):
    cdef readonly BinaryRule rule
    cdef double* margin           # [class]: scores of the instance being learned, before it is learned
    cdef double* counts           # [class]: weight learned
    cdef double net_correct       # correct predictions of the margins less those of the commonest class, where both differ
    cdef double total             # weight learned
    cdef double size              # summed size of the margins
    cdef double strength          # what net_correct makes of the class shares; 0 when too little to matter
    cdef double scaled_strength   # the same in margins: times the size of a sure one

    cdef void update_strength(self) noexcept nogil
    cdef inline bint is_biased(self, View* v) noexcept nogil
    cdef inline double bias(self, int label) noexcept nogil
    cdef void add_bias(self, View* v, const double* margin, double* out) noexcept nogil
    cdef void compare(self, View* v, double* margin, int y, double w) noexcept nogil
