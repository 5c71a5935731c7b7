from libc.stdint cimport int64_t

from varifold._engine.view cimport View
from varifold._numeric.hedge cimport Experts
from varifold.auto._alarms cimport Alarms
from varifold.auto._experts cimport ExpertPool
from varifold.auto._guard cimport Guard
from varifold.auto._history cimport History
from varifold.auto._stacking cimport Stack, Temperature


cdef class AutoModel(ExpertPool):
    cdef double* excess_loss       # [expert]: running mean of its log loss above the mixture's
    cdef double* stack_use         # [expert]: running mean of how far it moves the stack's logits
    cdef Stack stack
    cdef Experts weights           # of the experts and, last, the stack
    cdef double threshold
    cdef Guard guard
    cdef Temperature final         # of the mixture
    cdef double final_variance     # of the latter at the start
    cdef double* class_weight      # [class]: weight learned
    cdef double* mixed             # [class]
    cdef double* mixed_logit       # [class]
    cdef double* sharpened         # [class]: the mixture at its temperature
    cdef double* given             # [class]: the mixture, or what the majority class makes of it
    cdef double* portion           # [expert and stack]
    cdef double* loss              # [expert and stack]
    cdef double* share             # [slot]: contributions of one expert
    cdef History history
    cdef Alarms alarms

    cdef double handicap(self, int c) noexcept nogil
    cdef void consult(self, View* v) noexcept nogil
    cdef void combine(self, int64_t step) noexcept nogil
    cdef void sharpen(self) noexcept nogil
    cdef void apply_guard(self) noexcept nogil
    cdef void learn_combination(self, View* v, int y, double w) noexcept nogil
    cdef void measure_use(self, int e) noexcept nogil
    cdef void record(self, int64_t step, int y) noexcept nogil
    cdef void weights_in_use(self, double* out) noexcept nogil
