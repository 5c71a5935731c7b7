from libc.stdint cimport int32_t, int64_t

from varifold._engine.state cimport State
from varifold.forest._window cimport Row, Window

# A value of the column in question, with its row's label and weight.
cdef struct Point:
    double value
    double w
    int y

# The best split of a column: a row goes left if its number is at most `value`, or its level is `value`.
cdef struct Split:
    int64_t found      # rows added to the window before it was searched; 0: never
    double value
    double gain        # decrease of Gini impurity, in instances

cdef class SplitSearch:
    cdef State arrays          # scratch: by slot, by class and by row
    cdef Window window
    cdef int32_t* held         # [slot][2], by key: rows of the window that have it
    cdef int32_t* alive        # [slot][2]: keys that rows have, ascending
    cdef Split* best           # [slot][2], by key
    cdef double* sides         # [slot][class][2][2], by column, class, key's last bit and side: shares of the classes
    cdef Point* point          # [row]
    cdef double* left          # [class]
    cdef double* right         # [class]

    cdef int reserve(self, Py_ssize_t slots) except -1
    cdef int reserve_classes(self, Py_ssize_t classes) except -1
    cdef void put(self, Row* r) noexcept nogil
    cdef void count_row(self, Row* r, int32_t by) noexcept nogil
    cdef Py_ssize_t list_alive(self, Py_ssize_t slots) noexcept nogil
    cdef double* side_of(self, int32_t key, int c) noexcept nogil
    cdef Split* search(self, int32_t key, int classes) noexcept nogil
    cdef Py_ssize_t gather(self, int32_t key) noexcept nogil
    cdef Py_ssize_t best_cut(self, int32_t key, Py_ssize_t n, int classes, double* gain) noexcept nogil
    cdef void share(self, int32_t key, Py_ssize_t n, Py_ssize_t at, int classes) noexcept nogil
