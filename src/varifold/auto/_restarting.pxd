from libc.stdint cimport int64_t

from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View
from varifold._numeric.adwin cimport Adwin

cdef enum:
    COPIES = 6          # the active one, one on trial, one just made, and those kept
    MOST_KEPT = 3
    MOST_RECORDS = 32

# What a copy is for.
cdef enum Role:
    UNUSED
    ACTIVE              # predicts and learns
    TRIAL               # learns as well, and is compared with the active one
    KEPT                # was active once; does not learn

# Counts of a copy during the trial, compared with the active one.
cdef struct Score:
    double lead         # instances on which only this one was right, less those on which only the other was
    double differing    # instances on which one of the two was right
    double wrong        # errors

cdef struct Trial:
    int64_t active      # the active copy
    int64_t since       # step at which the trial began, -1 outside of a trial
    int64_t compared    # instances since then
    int64_t wanted      # 1: a new copy is to be made
    int64_t restarts    # replacements so far
    int64_t last        # step of the latest, -1 for none

# One replacement of the active copy.
cdef struct Record:
    int64_t step
    int64_t since       # step at which the trial began
    int64_t revived     # 1: by a copy that was kept; 0: by one that began with the trial
    int64_t instances   # compared
    double before       # error of the old copy before the trial,
    double error        # and in the trial
    double successor    # error of the new one in the trial

cdef class RestartingModel(Model):
    cdef object make                   # makes a new copy
    cdef list copies                   # [COPIES]: models, or None
    cdef int64_t* role                 # [COPIES]: one of Role
    cdef int64_t* last_active          # [COPIES]: step at which a kept copy was active last
    cdef Score* score                  # [COPIES]
    cdef Trial* trial
    cdef double* error_before          # error before the trial
    cdef Adwin errors                  # of the active copy
    cdef int predicted                 # class predicted for the instance that is learned next; -1: not known
    cdef int spare                     # copy made by prepare(), -1 for none
    cdef bint discarded                # a copy is no longer used, its memory can be released
    cdef double* class_score           # scratch [class]
    cdef Record[MOST_RECORDS] record   # a ring

    cdef int release_unused(self) except -1
    cdef void discard(self, int i) noexcept nogil
    cdef int unused_copy(self) noexcept nogil
    cdef int make_spare(self) except -1
    cdef int copy_on_trial(self) noexcept nogil
    cdef bint learn_copy(self, int i, View* v, int y, double w) noexcept nogil
    cdef void detect(self, bint wrong, int64_t step) noexcept nogil
    cdef void begin_trial(self, double before, int64_t step) noexcept nogil
    cdef void compare(self, View* v, int y, double w, bint wrong) noexcept nogil
    cdef void count(self, int i, bint wrong, bint active_wrong) noexcept nogil
    cdef int winner(self) noexcept nogil
    cdef void replace(self, int i, int64_t step) noexcept nogil
    cdef void keep(self, int i, int64_t step) noexcept nogil
    cdef void end_trial(self) noexcept nogil

cdef void set_prediction(RestartingModel m, int c) noexcept nogil
cdef int64_t restarted_at(RestartingModel m) noexcept nogil
