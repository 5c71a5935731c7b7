"""A model that is replaced by a younger copy, or by one of the past, when that answers better."""

from libc.stdint cimport int64_t

from varifold._engine.model cimport Calls, Model
from varifold._engine.view cimport View
from varifold._numeric.adwin cimport Adwin

cdef enum:
    COPIES = 6          # the one that answers, one on trial, one in the making and those of the past
    MOST_KEPT = 3       # copies of the past
    MOST_CHANGES = 32   # records

# What a copy is for.
cdef enum Purpose:
    UNUSED
    ANSWERS
    TRIAL               # learns beside the one that answers
    KEPT                # answered once; does not learn

# Counts of a copy since the trial began, against the one that answers.
cdef struct Score:
    double lead         # answers right where the other's was wrong, less the reverse
    double apart        # answers of which one was right
    double wrong        # answers wrong

cdef struct Change:
    int64_t step        # at which the copy was replaced
    int64_t since       # at which the trial began
    int64_t revived     # 1: by one of the past; 0: by one that began with the trial
    int64_t instances   # compared
    double before       # error of the copy before the trial
    double error        # its error in the trial
    double successor    # error of the other one in the trial

ctypedef void (*learn_scored_call)(void*, View*, int, double, double*, double*) noexcept nogil

cdef class RenewedModel(Model):
    cdef object make                   # a new copy
    cdef list copies                   # [COPIES]: models, or None
    cdef void* inner[COPIES]           # the models again, for calls without the GIL
    cdef Calls calls
    cdef learn_scored_call learn_scored_of
    cdef int[COPIES] purpose
    cdef int64_t[COPIES] last          # step at which a copy of the past answered last
    cdef Score[COPIES] record
    cdef int answered                  # the class answered for the instance that is learned next; -1: not known
    cdef int active                    # the copy that answers
    cdef int spare                     # the copy that prepare() made, -1 for none
    cdef bint discarded                # a copy is no longer used, its memory can be given back
    cdef bint wanted                   # a new copy is wanted
    cdef int64_t since                 # step at which the trial began, -1 outside of a trial
    cdef int64_t compared              # instances of the trial
    cdef double before                 # error before the trial
    cdef Adwin errors                  # of the copy that answers
    cdef double* score                 # scratch [class]
    cdef Change[MOST_CHANGES] change   # the latest ones, in a ring
    cdef readonly int64_t changes      # made so far
    cdef int64_t changed               # step of the latest, -1 for none

    cdef int release_unused(self) except -1
    cdef void discard(self, int i) noexcept nogil
    cdef int free_copy(self) noexcept nogil
    cdef int make_spare(self) except -1
    cdef int trial_copy(self) noexcept nogil
    cdef bint teach(self, int i, View* v, int y, double w) noexcept nogil
    cdef void watch(self, bint wrong, int64_t step) noexcept nogil
    cdef void begin_trial(self, double before, int64_t step) noexcept nogil
    cdef void compare(self, View* v, int y, double w, bint wrong) noexcept nogil
    cdef void count(self, int i, bint wrong, bint other) noexcept nogil
    cdef int winner(self) noexcept nogil
    cdef void replace(self, int i, int64_t step) noexcept nogil
    cdef void keep(self, int i, int64_t step) noexcept nogil
    cdef void end_trial(self) noexcept nogil

cdef void set_answer(RenewedModel m, int c) noexcept nogil
cdef int64_t changed_at(RenewedModel m) noexcept nogil
