from libc.stdint cimport int32_t, int64_t, uint64_t

from varifold.forest._feature_files cimport SavedFeatureStates
from varifold.forest._feature_state cimport FeatureState


cdef class Stumps(SavedFeatureStates):
    cdef readonly int candidates           # K
    cdef readonly int64_t r
    cdef readonly double growth, compression, smoothing
    cdef readonly uint64_t seed
    cdef readonly bint paper_vote, quantiles, random_out, worst_out
    cdef readonly bint by_rounds       # update every forest when t mod r = 0, not each by its own values
    # scratch
    cdef double* sums                  # [class][sums_capacity] running weights of a feature's digests
    cdef Py_ssize_t sums_capacity
    cdef double* below                 # [stump][class] weight below each edge
    cdef double* mix                   # [class]

    cdef int reserve_scratch(self, Py_ssize_t points, int wide) except -1 nogil
    cdef void learn_number(self, int32_t u, double x, int y, double w, int64_t t) noexcept nogil
    cdef void learn_level(self, int32_t s, int32_t u, int y, double w, int64_t t) noexcept nogil
    cdef void renew(self, int32_t u, int64_t t) noexcept nogil
    cdef void renew_all(self, int64_t t) noexcept nogil
    cdef void add_up(self, FeatureState* state) noexcept nogil
    cdef double candidate(self, FeatureState* state, double u) noexcept nogil
    cdef double impurity(self, FeatureState* state, double edge) noexcept nogil
    cdef double best_edge(self, int32_t u, int64_t t) noexcept nogil
    cdef void insert_edge(self, FeatureState* state, int held, double edge) noexcept nogil
    cdef void drop_edge(self, int32_t u, int64_t t) noexcept nogil
    cdef int worst(self, FeatureState* state) noexcept nogil
    cdef void fill_rows(self, FeatureState* state) noexcept nogil
    cdef void fill_row(self, double* row, double* share) noexcept nogil

cdef double TIE                        # differences below it are rounding
