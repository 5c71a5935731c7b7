from libc.stdint cimport int32_t, int64_t

from varifold._core.experts cimport Experts
from varifold._core.model cimport Calls, Model
from varifold._core.stacking cimport Stack, Temperature
from varifold._core.view cimport View

cdef enum:
    HISTORY = 64

cdef class FrequencyModel(Model):
    cdef double* counts


cdef class AutoModel(Model):
    cdef readonly list names
    cdef list models
    cdef void** inner              # the models again, for calls without the GIL
    cdef Calls calls
    cdef int k                     # experts; the stack is one more
    cdef int* on_columns           # expert sees which columns are present, not values
    cdef int* costly               # expert may be put to sleep
    cdef int* asleep
    cdef double* lag               # log loss above the mixture's, lately
    cdef Temperature* heat
    cdef Stack stack
    cdef Experts weights
    cdef double drift, floor, threshold
    cdef double* met               # weight by label
    cdef double* logit             # [expert][class]
    cdef double* calibrated        # [expert and stack][class]
    cdef double* mixed             # [class]
    cdef double* portion           # [expert and stack]
    cdef double* loss              # [expert and stack]
    cdef double* score             # [class]
    cdef double* share             # contributions of one expert
    cdef Py_ssize_t share_room
    cdef View columns              # presence as an instance of its own
    cdef View known                # the instance without its fresh slots
    cdef int32_t* slot_scratch
    cdef double* x_scratch
    cdef double* raw_scratch
    cdef unsigned char* fresh_scratch
    cdef double* ones
    cdef Py_ssize_t scratch_room
    cdef double* history           # [HISTORY][expert and stack]
    cdef int64_t* history_step
    cdef int64_t history_count, history_every
    cdef double[4] watch           # errors and log losses, quickly and slowly averaged

    cdef int room_for_classes(self, int classes) except -1
    cdef View* as_columns(self, View* v) noexcept nogil
    cdef View* without_fresh(self, View* v) noexcept nogil
    cdef void reserve(self, Py_ssize_t n) noexcept nogil
    cdef bint idle(self, int e, int64_t step) noexcept nogil
    cdef double handicap(self, int c) noexcept nogil
    cdef void consult(self, View* v) noexcept nogil
    cdef void remember(self, int64_t step, int y) noexcept nogil
