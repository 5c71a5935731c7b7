"""Grow one tree over the rows of a window, some rows at a time.

Subclasses define the objective: they sum statistics over rows (`add_row`; as many numbers as there are classes) and
define what a node holds (`weigh_node`, `count_row`) and how much a split gains (`judge`, `importance_of`).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from varifold._engine.models.model cimport Model
from varifold.forest._nodes cimport Nodes
from varifold.forest._window cimport Row, Window

cdef enum:
    DEEPEST = 30         # splits on a path
    MOST_CUTS = 64       # values drawn for a column
    MOST_COLUMNS = 64    # columns drawn for a split
    SAMPLE = 250         # rows that a split is chosen by
    LABELS_PER_ROW = 16  # each side of a split has at least one row per this many labels

cdef struct Split:
    int32_t key
    double value
    uint8_t way
    double gain

# A node of the tree that grows, whose rows have not been processed.
cdef struct Pending:
    int32_t node
    Py_ssize_t start, stop     # its rows in Window.order
    int depth

cdef class Growing(Model):
    cdef Window window
    cdef Nodes nodes
    cdef readonly double columns       # tried for a split, in square roots of those present
    cdef readonly int cuts             # values drawn for a column, between which thresholds lie
    cdef readonly Py_ssize_t min_leaf  # rows on either side of a split, unless there are many labels
    cdef uint64_t seed
    cdef readonly int64_t begun        # trees begun so far
    cdef int32_t root_growing          # of the tree that grows, 0 for none
    cdef Py_ssize_t length_growing     # rows it is grown on
    cdef int64_t end                   # rows added to the window before it began
    cdef double weight                 # of its rows
    cdef uint64_t draws                # made for it
    cdef uint64_t tree_hash            # scratch: of the seed and the tree, as the draws of a split begin
    cdef Py_ssize_t enough             # rows on either side of a split of the node, among those that it is chosen by
    cdef Py_ssize_t credit             # rows that may be processed before the next instance
    cdef Pending[DEEPEST + 2] pending  # a stack
    cdef int n_pending
    cdef double* importance            # [slot]: decrease of impurity, recent trees counting most
    cdef double* table                 # scratch [bin][class]: sums over rows, as add_row() makes them
    cdef double* total                 # scratch [class]: of the node
    cdef double* present               # scratch [class]: of its rows that have the column
    cdef double* below                 # scratch [class]: of those left of the threshold
    cdef double[MOST_CUTS] cut         # scratch: thresholds or levels on trial
    cdef Py_ssize_t[MOST_CUTS + 2] rows  # scratch: rows by bin
    cdef double[SAMPLE] value          # scratch: of the rows that a split is chosen by, in the column on trial
    cdef int[SAMPLE] bin               # scratch: thresholds below it

    cdef Py_ssize_t fewest(self) noexcept nogil
    cdef Py_ssize_t pick(self, Py_ssize_t n) noexcept nogil
    cdef void begin(self, Py_ssize_t length, int trees) noexcept nogil
    cdef bint work(self, Py_ssize_t rows, int trees) noexcept nogil
    cdef void grow_node(self, Pending* p, int trees) noexcept nogil
    cdef void abandon(self) noexcept nogil
    cdef void add_row(self, double* sums, Row* r) noexcept nogil
    cdef void count_row(self, int32_t node, Row* r) noexcept nogil
    cdef bint weigh_node(self, int32_t node, int32_t* order, Py_ssize_t n) noexcept nogil
    cdef double importance_of(self, double gain) noexcept nogil
    cdef bint find_split(self, int32_t* order, Py_ssize_t n, Split* best) noexcept nogil
    cdef int32_t* sample(self, int32_t* order, Py_ssize_t n) noexcept nogil
    cdef void gather(self, int32_t* order, Py_ssize_t n, int32_t key) noexcept nogil
    cdef int draw_cuts(self, Py_ssize_t n, int32_t key) noexcept nogil
    cdef void count_bins(self, int32_t* order, Py_ssize_t n, int32_t key, int m) noexcept nogil
    cdef bint try_column(self, int32_t* order, Py_ssize_t n, int32_t key, Split* best) noexcept nogil
    cdef bint try_split(self, Py_ssize_t left, Py_ssize_t n, int m, Split* tried, Split* best) noexcept nogil
    cdef bint judge(self, double* left, double* more, Py_ssize_t rows, Py_ssize_t n, Split* tried,
                    Split* best) noexcept nogil
    cdef Py_ssize_t part(self, int32_t* order, Py_ssize_t n, Split* split) noexcept nogil
