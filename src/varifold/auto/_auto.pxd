from libc.stdint cimport int32_t, int64_t

from varifold.auto._history cimport Chronicle
from varifold._numeric.hedge cimport Experts
from varifold.auto._views cimport Lenses
from varifold._engine.model cimport Calls, Model
from varifold.auto._stacking cimport Stack, Temperature
from varifold._engine.view cimport View


cdef class AutoModel(Model):
    cdef readonly list names
    cdef list models
    cdef void** inner              # the models again, for calls without the GIL
    cdef Calls calls
    cdef int k                     # experts; the stack is one more
    cdef int* on_columns           # expert sees which columns are present, not values
    cdef int* costly               # expert may be put to sleep
    cdef int* asleep
    cdef Py_ssize_t* most          # slots beyond which the expert stands aside for good; 0 none
    cdef int* aside
    cdef double* lag               # log loss above the mixture's, lately
    cdef double* use               # how far it moves the stack's logits lately
    cdef double* usual             # [class][expert]: logits lately, brought by those asleep
    cdef Temperature* heat
    cdef Stack stack
    cdef Experts weights
    cdef double drift, floor, threshold
    cdef double guard              # lead of another answer that is asked for, as a multiple of the majority's
    cdef double right_lead         # rounds in which the mixture was right against the most frequent class, less the others
    cdef double behind             # wrong answers given more than the most frequent class would have
    cdef double loss_lead          # log loss of the class frequencies less the mixture's
    cdef double* met               # weight by label
    cdef double* logit             # [expert][class]
    cdef double* calibrated        # [expert and stack][class]
    cdef double* mixed             # [class]
    cdef double* given             # [class]: the mixture, or what the majority class makes of it
    cdef double* portion           # [expert and stack]
    cdef double* loss              # [expert and stack]
    cdef double* score             # [class]
    cdef double* share             # contributions of one expert
    cdef Lenses lenses
    cdef Chronicle past

    cdef int room_for_classes(self, int classes) except -1
    cdef bint idle(self, int e, int64_t step) noexcept nogil
    cdef double handicap(self, int c) noexcept nogil
    cdef void consult(self, View* v) noexcept nogil
    cdef void ask(self, View* v) noexcept nogil
    cdef void weigh(self, int e) noexcept nogil
    cdef void combine(self, int64_t step) noexcept nogil
    cdef void give(self) noexcept nogil
    cdef double frequency(self, int c) noexcept nogil
    cdef void watch(self, int y, double w) noexcept nogil
    cdef int common(self) noexcept nogil
    cdef void remember(self, int64_t step, int y) noexcept nogil
