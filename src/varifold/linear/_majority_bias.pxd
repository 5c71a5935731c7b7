from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.view cimport View

cdef class MajorityBias(Model):
    cdef readonly BinaryRule rule
    cdef double* margin           # [class]: scores of the instance being learned, before it is learned
    cdef double* counts           # [class]: weight learned
    cdef double net_correct       # correct predictions of the margins minus those of the majority class, if they differ
    cdef double total             # weight learned
    cdef double size              # summed absolute margins
    cdef double strength          # factor of the class shares, computed from net_correct; 0 when negligible
    cdef double scaled_strength   # the same on the scale of a confident margin

    cdef void update_strength(self) noexcept nogil
    cdef inline bint is_biased(self, View* v) noexcept nogil
    cdef inline double bias(self, int label) noexcept nogil
    cdef void add_bias(self, View* v, const double* margin, double* out) noexcept nogil
    cdef void compare(self, View* v, double* margin, int y, double w) noexcept nogil
