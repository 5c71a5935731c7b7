from libc.stdint cimport int64_t

from varifold._engine.view cimport View
from varifold._numeric.hedge cimport Experts
from varifold.auto._alarms cimport Alarms
from varifold.auto._experts cimport ExpertPool
from varifold.auto._history cimport History
from varifold.auto._stacking cimport Stack


cdef class AutoModel(ExpertPool):
    cdef double* lag               # [expert]: running mean of its log loss above the mixture's
    cdef double* use               # [expert]: running mean of how far it moves the stack's logits
    cdef Stack stack
    cdef Experts weights           # of the experts and, last, the stack
    cdef double drift, floor, threshold, temperature_prior
    cdef double guard              # lead of another answer that is asked for, as a multiple of the majority's
    cdef double right_lead         # rounds in which the mixture was right against the most frequent class, less the others
    cdef double behind             # wrong answers given more than the most frequent class would have
    cdef double loss_lead          # log loss of the class frequencies less the mixture's
    cdef double* class_weight      # [class]: weight learned
    cdef double* mixed             # [class]
    cdef double* given             # [class]: the mixture, or what the majority class makes of it
    cdef double* portion           # [expert and stack]
    cdef double* loss              # [expert and stack]
    cdef double* share             # [slot]: contributions of one expert
    cdef History history
    cdef bint watches              # rises of the error are noticed and recorded
    cdef Alarms alarms

    cdef double handicap(self, int c) noexcept nogil
    cdef void consult(self, View* v) noexcept nogil
    cdef void combine(self, int64_t step) noexcept nogil
    cdef void apply_guard(self) noexcept nogil
    cdef double frequency(self, int c) noexcept nogil
    cdef void learn_combination(self, View* v, int y, double w) noexcept nogil
    cdef void watch(self, int y, double w) noexcept nogil
    cdef void measure_use(self, int e) noexcept nogil
    cdef void record(self, int64_t step, int y) noexcept nogil
