from libc.stdint cimport int32_t, uint8_t

from varifold._numeric.hedge cimport Experts
from varifold.linear._ftrl cimport Penalty, Proximal
from varifold._engine.model cimport Model
from varifold._engine.view cimport View

cdef class OVFIVModel(Model):
    cdef readonly Model base
    cdef Penalty penalty
    cdef Experts experts
    cdef readonly bint presence      # weights on the columns present instead of those absent
    cdef readonly bint auto
    cdef readonly bint bias          # the variation learner has an unpenalised bias
    cdef readonly bint only_variation  # answers are those of the variation learner; the base learner only counts classes
    cdef double there, known, rounds # columns present and known since the last look at the encoding; instances learned
    cdef int problems
    cdef double varied               # scratch: the variation learner's score, with two classes
    cdef Proximal* table             # [slot][problem]; slot 0 is the bias
    cdef double* counts              # weight by class
    cdef double* base_score          # scratch by class, as are the next two
    cdef double* base_proba
    cdef double* own_proba
    cdef Py_ssize_t room             # classes there is room for
    cdef View familiar               # scratch: the instance without what is new in it
    cdef Py_ssize_t familiar_room
    cdef int32_t* familiar_slot
    cdef int32_t* familiar_column
    cdef double* familiar_x
    cdef double* familiar_raw
    cdef uint8_t* familiar_fresh

    cdef int make_room(self, Py_ssize_t room) except -1
    cdef View* without_fresh(self, View* v) noexcept nogil
    cdef inline Proximal* cell(self, Py_ssize_t slot, int c) noexcept nogil
    cdef double vary(self, View* v, int c) noexcept nogil
    cdef double judge(self, View* v) noexcept nogil
    cdef double factor(self, View* v, int label) noexcept nogil
    cdef void step(self, View* v, int c, double gradient) noexcept nogil
    cdef void consider_encoding(self, View* v) noexcept nogil
    cdef void turn_round(self) noexcept nogil
