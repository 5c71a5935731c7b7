from libc.stdint cimport int32_t

from varifold._engine.state cimport State
from varifold._numeric.hedge cimport Experts

cdef enum:
    TRACKED = 256      # slots whose presence is used; entry 0 is for the number of features present
    EXPERTS = 8

# Terms of the expected size of an error, in addition to the base.
cdef enum:
    PRESENCE
    LEVEL
    SLOW
    FAST
    PARTS

cdef enum:
    EVIDENCE_NUMBERS = 3 + PARTS + EXPERTS    # of a memo

cdef class Evidence:
    cdef bint is_scale              # learns the logarithm of a size; otherwise the mean of a score in [0, 1]
    cdef State arrays
    cdef Experts experts
    cdef double* saved_experts      # what experts_dump() writes, for files
    cdef double* numbers            # indexed by the enum in the .pyx
    cdef double* weight             # [TRACKED]
    cdef double* variance           # [TRACKED]
    cdef double* count              # [TRACKED] instances with the slot
    cdef Py_ssize_t top             # entries in use: no slot from here on was ever present
    # of the instance at hand
    cdef double* x                  # [TRACKED] presence less its mean
    cdef double amount              # log ratio of the features present to their mean number
    cdef double level
    cdef double part[PARTS]
    cdef double offset[EXPERTS]     # by expert
    cdef double expected            # base and mixed offset

    cdef int declare_tracked(self) except -1
    cdef void expect(self, const int32_t* slots, Py_ssize_t n, double level) noexcept nogil
    cdef void write_memo(self, double* out) noexcept nogil
    cdef void read_memo(self, const double* memo) noexcept nogil
    cdef double scale(self) noexcept nogil
    cdef bint started(self) noexcept nogil
    cdef double learned(self) noexcept nogil
    cdef void start(self, double size) noexcept nogil
    cdef void learn(self, const int32_t* slots, Py_ssize_t n, double size) noexcept nogil
    cdef double error(self, double expected, double size) noexcept nogil
    cdef double ratio(self, double expected, double size) noexcept nogil
    cdef void weigh_experts(self, double size) noexcept nogil
    cdef void center(self, const int32_t* slots, Py_ssize_t n) noexcept nogil
    cdef void learn_presence(self, double error) noexcept nogil
    cdef double follow_jump(self, double error) noexcept nogil
    cdef void learn_level(self, double error) noexcept nogil
    cdef double centre(self) noexcept nogil
    cdef void sum_held(self) noexcept nogil
    cdef void count_present(self, const int32_t* slots, Py_ssize_t n) noexcept nogil
    cdef void forget(self, int32_t slot) noexcept nogil
