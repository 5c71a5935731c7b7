"""Tabulate counts by distinct score: one radix sort instead of a sort, an inverse and two sums."""

import numpy as np

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    DIGIT = 11                  # bits of a digit: a table of its values fits into the L1 cache
    VALUES = 1 << DIGIT
    DIGITS = 6                  # of 64 bits

cdef uint64_t SIGN = <uint64_t> 1 << 63


cdef inline uint64_t key_of(double score) noexcept nogil:
    """Return an integer that sorts as the score does; zeros of both signs share one, and so do all NaN."""
    cdef double x = score + 0.0
    cdef uint64_t bits
    if x != x:
        return ~(<uint64_t> 0)
    memcpy(&bits, &x, 8)
    return ~bits if bits & SIGN else bits | SIGN


cdef void count_digits(const uint64_t* key, Py_ssize_t n, Py_ssize_t* counts) noexcept nogil:
    """Count the values of each digit; one table per digit."""
    cdef Py_ssize_t i
    cdef int d
    memset(counts, 0, DIGITS * VALUES * sizeof(Py_ssize_t))
    for i in range(n):
        for d in range(DIGITS):
            counts[d * VALUES + (key[i] >> (DIGIT * d) & (VALUES - 1))] += 1


cdef bint sort_digit(
    const uint64_t* key, const int32_t* place, uint64_t* key_out, int32_t* place_out, Py_ssize_t n, int d,
    Py_ssize_t* counts
) noexcept nogil:
    """Sort by one digit, stably; return False, and write nothing, if the digit is the same in all keys."""
    cdef Py_ssize_t i, total = 0, at
    cdef int v, shift = DIGIT * d
    if counts[key[0] >> shift & (VALUES - 1)] == n:
        return False
    for v in range(VALUES):     # from counts to the position of the first of each value
        at = counts[v]
        counts[v] = total
        total += at
    for i in range(n):
        v = <int> (key[i] >> shift & (VALUES - 1))
        at = counts[v]
        counts[v] += 1
        key_out[at] = key[i]
        place_out[at] = place[i]
    return True


cdef int sort_keys(uint64_t[:, ::1] keys, int32_t[:, ::1] places, Py_ssize_t n, Py_ssize_t* counts) noexcept nogil:
    """Sort keys[0] and places[0] by the keys, stably; return the row that holds the result."""
    cdef int d, now = 0
    count_digits(&keys[0, 0], n, counts)
    for d in range(DIGITS if n else 0):
        if sort_digit(&keys[now, 0], &places[now, 0], &keys[1 - now, 0], &places[1 - now, 0], n, d, counts + d * VALUES):
            now = 1 - now
    return now


def tabulate(const double[::1] scores, const double[:, ::1] counts, Py_ssize_t ascending=0) -> NDArray[np.float64]:
    """Return the distinct scores, ascending, and below them the sums of each row of `counts` at each score.

    The result equals `numpy.unique` with its inverse and a weighted `bincount` for each row of counts, to the last bit.
    The first `ascending` scores are sorted already and are merged with the others.
    """
    cdef Py_ssize_t n = scores.shape[0], m = n - ascending, rows = counts.shape[0], i, at, r, k = -1, a = 0, b = 0
    cdef uint64_t[:, ::1] keys = np.empty((2, max(m, 1)), dtype=np.uint64)
    cdef int32_t[:, ::1] places = np.empty((2, max(m, 1)), dtype=np.int32)
    cdef Py_ssize_t[::1] digits = np.empty(DIGITS * VALUES, dtype=np.intp)
    cdef uint64_t key, last = 0
    cdef int now
    found = np.zeros((1 + rows, n))
    cdef double[:, ::1] table = found
    with nogil:
        for i in range(m):
            keys[0, i] = key_of(scores[ascending + i])
            places[0, i] = <int32_t> (ascending + i)
        now = sort_keys(keys, places, m, &digits[0])
        for i in range(n):
            if b == m or (a < ascending and key_of(scores[a]) <= keys[now, b]):
                key, at, a = key_of(scores[a]), a, a + 1
            else:
                key, at, b = keys[now, b], places[now, b], b + 1
            if i == 0 or key != last:
                k += 1
                table[0, k] = scores[at]
                last = key
            for r in range(rows):
                table[1 + r, k] += counts[r, at]
    return found[:, : k + 1]
