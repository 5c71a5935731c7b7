"""Numbers kept in ascending order: for the few hundred of a window, binary search and shifting is faster than a tree."""

from libc.stdint cimport int32_t
from libc.string cimport memmove


cdef inline Py_ssize_t place_among(const int32_t* sorted, Py_ssize_t n, int32_t key) noexcept nogil:
    """Return the number of sorted keys that are smaller: the place of this one, which may not be there."""
    cdef Py_ssize_t low = 0, high = n, mid
    while low < high:
        mid = (low + high) >> 1
        if sorted[mid] < key:
            low = mid + 1
        else:
            high = mid
    return low


cdef inline Py_ssize_t first_not_below(const double* sorted, Py_ssize_t n, double x) noexcept nogil:
    """Return the number of sorted values that are smaller than x."""
    cdef Py_ssize_t low = 0, half
    while n > 1:                     # no branch depends on a value: none is predicted wrongly
        half = n >> 1
        low += half * (sorted[low + half - 1] < x)
        n -= half
    return low + (n == 1 and sorted[low] < x)


cdef inline Py_ssize_t first_above(const double* sorted, Py_ssize_t n, Py_ssize_t low, double x) noexcept nogil:
    """Return the number of sorted values that are at most x, given that the first `low` are smaller."""
    cdef Py_ssize_t high = n, mid
    if low == n or sorted[low] > x:
        return low
    if low + 1 == n or sorted[low + 1] > x:
        return low + 1
    while low < high:
        mid = (low + high) >> 1
        if sorted[mid] <= x:
            low = mid + 1
        else:
            high = mid
    return low


cdef inline void replace_ascending(double* sorted, Py_ssize_t n, double x, bint full, double oldest) noexcept nogil:
    """Insert x into n sorted numbers, for which there is memory; if `full`, in exchange for `oldest`, one of them."""
    cdef Py_ssize_t at = first_not_below(sorted, n, x), removed
    if not full:
        memmove(sorted + at + 1, sorted + at, (n - at) * sizeof(double))
    else:
        removed = first_not_below(sorted, n, oldest)
        if removed < at:
            at -= 1
            memmove(sorted + removed, sorted + removed + 1, (at - removed) * sizeof(double))
        else:
            memmove(sorted + at + 1, sorted + at, (removed - at) * sizeof(double))
    sorted[at] = x
