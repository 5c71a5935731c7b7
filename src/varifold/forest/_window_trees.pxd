from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.view cimport View
from varifold.forest._growing cimport Growing
from varifold.forest._window cimport Row

cdef class WindowTrees(Growing):
    cdef readonly int trees
    cdef readonly double smoothing     # of a node's prediction towards its parent's, in instances
    cdef int32_t* root                 # [tree]; then those from before the last drift, while they are on trial
    cdef readonly int64_t grown        # trees grown since the last drift
    cdef readonly int earlier          # trees on trial
    cdef Py_ssize_t earlier_length     # rows of the window that the next of them would be grown on
    cdef Py_ssize_t trial              # rows added since the trial began
    cdef double lead                   # log of the odds of the trees grown since the drift against those on trial
    cdef readonly Py_ssize_t most      # rows of the window that a tree may be grown on
    cdef readonly Py_ssize_t length    # rows of the window that the next tree is grown on
    cdef Py_ssize_t since              # rows added since a tree was begun
    cdef double usual                  # loss, averaged over about 500 instances
    cdef int64_t judged                # instances since the average began
    cdef double excess                 # sum of the losses beyond the usual, since it was last 0
    cdef int64_t rising                # instances since then
    cdef Row current                     # scratch: the instance by column, in the two arrays below
    cdef int32_t* current_key            # scratch [slot]
    cdef double* current_value           # scratch [slot]
    cdef double* part_of               # scratch [slot]: what a feature adds to a prediction
    cdef uint8_t* marked               # scratch [slot][2]: keys of evicted features that rows and nodes may still hold
    cdef bint any_marked

    cdef int recent(self) noexcept nogil
    cdef int predicting(self) noexcept nogil
    cdef int32_t root_of(self, int t) noexcept nogil
    cdef double weight_of(self, int t) noexcept nogil
    cdef void read(self, View* v) noexcept nogil
    cdef int32_t child_of(self, int32_t node, Row* r) noexcept nogil
    cdef void advance(self, bint prepared) noexcept nogil
    cdef void watch(self, double loss) noexcept nogil
    cdef void begin_trial(self) noexcept nogil
    cdef void compare(self, double recent_loss, double earlier_loss) noexcept nogil
    cdef void end_trial(self) noexcept nogil
    cdef double times_variance(self, double factor, double loss, double rate) noexcept nogil
    cdef Py_ssize_t next_length(self) noexcept nogil
    cdef void plant(self) noexcept nogil
    cdef int32_t blamed(self, int32_t key) noexcept nogil
    cdef void forget_nodes(self, int32_t key, double level) noexcept nogil
    cdef void forget_marked(self) noexcept nogil
