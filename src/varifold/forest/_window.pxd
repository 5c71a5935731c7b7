"""Most recent labelled instances, by column, and the test of a split on one of them."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from varifold._engine.names.table cimport NameTable
from varifold._engine.view cimport View
from varifold._numeric.ascending cimport place_among

# Keys of entries: a number of column c has the key 2c and its value, a string the key 2c + 1 and its level's slot (0
# once the level was evicted).
cdef struct Row:
    int32_t* key       # ascending, each once
    double* value
    Py_ssize_t n
    Py_ssize_t capacity
    int y              # label of a classifier's row
    double target      # number of a regressor's row
    double w

# Ways of a split: a bit for the side of absent values, a bit for splits that test only presence.
cdef enum Way:
    ABSENT_RIGHT = 1
    PRESENCE = 2

cdef inline Py_ssize_t place(Row* r, int32_t key) noexcept nogil:
    """Return the position of the entry with this key, -1 if there is none."""
    cdef Py_ssize_t at = (key >> 1) - 1
    if 0 <= at < r.n and r.key[at] == key:
        return at    # the usual position if every column is present
    at = place_among(r.key, r.n, key)
    return at if at < r.n and r.key[at] == key else -1

cdef inline int side(Row* r, int32_t key, double value, uint8_t way) noexcept nogil:
    """Return the side of a row at a split: 0 left, 1 right. Key 0 is an evicted column, absent for all rows."""
    cdef Py_ssize_t i = place(r, key)
    if i < 0 and (not key & 1 or place(r, key - 1) < 0):
        return way & ABSENT_RIGHT
    if way & PRESENCE:
        return 0
    if not key & 1:
        return 0 if r.value[i] <= value else 1
    return 0 if i >= 0 and r.value[i] == value else 1

cdef inline int side_of(double number, double value, uint8_t way) noexcept nogil:
    """Return the side of a row at a split on a numeric column, where NaN means absent."""
    if number != number:
        return way & ABSENT_RIGHT
    return 0 if way & PRESENCE or number <= value else 1

cdef void read_view(View* v, NameTable names, Row* into) noexcept nogil

cdef enum:
    FEWEST_ROWS = 1000    # kept regardless of how many numbers they hold

cdef class Window:
    cdef readonly Py_ssize_t most       # rows kept
    cdef readonly bint numeric          # rows have targets, not labels
    cdef readonly int64_t taken         # rows added so far
    cdef Py_ssize_t most_numbers        # maximum of numbers: the ring stops growing when it holds as many; 0: unbounded
    cdef double narrow                  # rows up to this many numbers on average are exempt
    cdef Py_ssize_t numbers             # numbers in the window
    cdef bint closed                    # whether the ring stopped growing
    cdef Row* row                       # ring: row number t is at t % most
    cdef Py_ssize_t capacity            # rows with allocated memory
    cdef double* table                  # scratch [slot][capacity]: numbers by column and row, NaN if absent
    cdef Py_ssize_t tabled              # slots in it; 0: no table
    cdef int32_t* order                 # scratch [capacity]: row order while a tree grows, twice
    cdef int32_t* spare

    cdef int reserve(self, Py_ssize_t entries) except -1 nogil
    cdef int reserve_rows(self, Py_ssize_t rows) except -1 nogil
    cdef int reserve_entries(self, Row* r, Py_ssize_t entries) except -1 nogil
    cdef int take_rows(self, const int64_t[::1] ends, const int32_t[::1] keys, const double[::1] values,
                       const double[::1] y, const double[::1] w) except -1
    cdef int fit_table(self, Py_ssize_t slots, Py_ssize_t capacity) except -1 nogil
    cdef void enter(self, Py_ssize_t t, bint take_out) noexcept nogil
    cdef bint holds_enough(self) noexcept nogil
    cdef void close_ring(self) noexcept nogil
    cdef void put(self, Row* r) noexcept nogil
    cdef void forget(self, int32_t key, double level) noexcept nogil
    cdef void forget_marked(self, const uint8_t* marked) noexcept nogil
