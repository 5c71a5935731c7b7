from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from varifold._engine.model cimport Model
from varifold._engine.state cimport State
from varifold._engine.view cimport View
from varifold.forest._split_search cimport SplitSearch
from varifold.forest._window cimport Row, Window

cdef class DynFoModel(Model):
    cdef readonly Py_ssize_t most        # stumps (M)
    cdef readonly double alpha           # rate of the weights
    cdef readonly double beta            # chance that a stump to be learned again is kept
    cdef readonly double delta           # share of the features drawn for a stump
    cdef readonly double epsilon         # loss of weight by an absent feature
    cdef readonly double gamma           # error that adds a stump
    cdef readonly double low             # weight below which a stump is dropped (theta1)
    cdef readonly double middle          # quantile of the weights below which it is learned again (theta2)
    cdef readonly Py_ssize_t draws       # features drawn for a stump, at the most
    cdef uint64_t seed
    cdef Window window
    cdef SplitSearch splits
    cdef State stumps
    cdef readonly Py_ssize_t n           # stumps there are
    cdef int32_t* key                    # [stump]: what it splits, 0 when that was evicted
    cdef double* value                   # [stump]
    cdef double* weight                  # [stump]
    cdef double* shares                  # [stump][class][2]: of the classes on either side
    cdef int32_t* majority                # scratch [stump][2]: the largest class of either side
    cdef double* counts                  # [class]: weight learned
    cdef uint8_t* wrong                  # ring: whether recent predictions were wrong
    cdef readonly int64_t predicted
    cdef Row current                       # scratch: the instance by column, in the two arrays below
    cdef int32_t* current_key              # scratch [slot]
    cdef double* current_value             # scratch [slot]
    cdef int32_t* entry                  # scratch [slot][2], 0 between calls: 1 + where a key is in the instance
    cdef double* mean                    # scratch [class]
    cdef double* part                    # scratch [slot]
    cdef double* sorted                  # scratch [stump]

    cdef void read(self, View* v) noexcept nogil
    cdef void unmark(self) noexcept nogil
    cdef int side(self, Py_ssize_t j) noexcept nogil
    cdef double* share(self, Py_ssize_t j, int c) noexcept nogil
    cdef double vote(self, double* out) noexcept nogil
    cdef void absorb(self, View* v, int y, double w, double* out) noexcept nogil
    cdef double error(self) noexcept nogil
    cdef void reweigh(self, int y, double w) noexcept nogil
    cdef double threshold(self) noexcept nogil
    cdef void renew(self, Py_ssize_t n_alive, int64_t t) noexcept nogil
    cdef void learn_stump(self, Py_ssize_t j, Py_ssize_t n_alive, uint64_t luck) noexcept nogil
    cdef void set_majority(self, Py_ssize_t j) noexcept nogil
    cdef void lose(self, int32_t key, double level) noexcept nogil
