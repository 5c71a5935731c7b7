"""Which cells of a block are seen: every decision is a hash of (seed, row, column), so no state and no order.

All functions take a block's ``indptr`` and ``indices`` and ``position`` (vocabulary id -> place of its column among the
columns of the stream), and return one uint8 a cell. Indicators of one column share a place, so they go together.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    static inline uint64_t folded_product(uint64_t a, uint64_t b) {
        unsigned __int128 p = (unsigned __int128) a * b;
        return (uint64_t) p ^ (uint64_t) (p >> 64);
    }
    """
    uint64_t folded_product(uint64_t a, uint64_t b) noexcept nogil

cdef inline uint64_t mix(uint64_t z) noexcept nogil:
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EBULL
    return z ^ (z >> 31)


cdef inline uint64_t row_key(uint64_t seed, int64_t row) noexcept nogil:
    return mix(mix(seed + <uint64_t> 0x9E3779B97F4A7C15ULL) + <uint64_t> row * <uint64_t> 0x9E3779B97F4A7C15ULL)


cdef inline uint32_t draw(uint64_t key, uint64_t column) noexcept nogil:
    """32 bits; the two columns of a pair share one product."""
    cdef uint64_t z = key + ((column >> 1) + 1) * <uint64_t> 0xD1B54A32D192ED03ULL
    z = folded_product(z, z ^ <uint64_t> 0xE7037ED1A0B428DBULL)
    return <uint32_t> (z >> 32) if column & 1 else <uint32_t> z


cdef inline double uniform(uint64_t key, uint64_t column) noexcept nogil:
    """In [0, 1), 32 bits."""
    return draw(key, column) * (1.0 / 4294967296.0)


def occurring(const int32_t[::1] indices, Py_ssize_t size):
    """Which of the ids below `size` are stored anywhere."""
    cdef Py_ssize_t k
    out = np.zeros(size, dtype=np.uint8)
    cdef uint8_t[::1] seen = out
    with nogil:
        for k in range(indices.shape[0]):
            seen[indices[k]] = 1
    return out


def bernoulli(const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] position, removal,
              const int32_t[::1] group, uint64_t seed, int64_t start=0, Py_ssize_t least=0):
    """Column j of a row of group g is hidden with probability ``removal[g, j]``; at least `least` columns stay."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, k
    cdef uint64_t key
    cdef int32_t j
    # probabilities as bounds on 32 bits, by vocabulary id
    bounds = np.ascontiguousarray(np.round(np.asarray(removal) * 2.0**32).astype(np.uint64)[:, np.asarray(position)])
    cdef const uint64_t[:, ::1] bound = bounds
    cdef const uint64_t* hidden
    out = np.empty(indices.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] keep = out
    with nogil:
        for i in range(n):
            key = row_key(seed, start + i)
            hidden = &bound[group[i], 0]
            for k in range(indptr[i], indptr[i + 1]):
                keep[k] = draw(key, position[indices[k]]) >= hidden[indices[k]]
            if least:
                keep_some(indices, position, keep, indptr[i], indptr[i + 1], key, least)
    return out


cdef void keep_some(const int32_t[::1] indices, const int32_t[::1] position, uint8_t[::1] keep, Py_ssize_t low,
                    Py_ssize_t high, uint64_t key, Py_ssize_t least) noexcept nogil:
    """Bring back the hidden columns that came nearest to staying, until `least` are there."""
    cdef Py_ssize_t k, kept = 0, last = -1
    cdef int64_t best, u
    cdef int32_t j, best_column
    for k in range(low, high):
        j = position[indices[k]]
        if keep[k] and j != last:
            kept += 1
            last = j
    while kept < least:
        best = -1
        best_column = -1
        for k in range(low, high):
            j = position[indices[k]]
            u = draw(key, j)
            if not keep[k] and u > best:
                best = u
                best_column = j
        if best_column < 0:
            return
        for k in range(low, high):
            if position[indices[k]] == best_column:
                keep[k] = 1
        kept += 1


def exact(const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] position, Py_ssize_t width,
          Py_ssize_t hidden, uint64_t seed, int64_t start=0):
    """Of the `width` columns, `hidden` are taken away from each row: a draw without replacement.

    Only the columns that a row has are visited; each is hidden with the chance it has given those before it, which is
    the same distribution as drawing from all columns.
    """
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, k, left, open_columns
    cdef uint64_t key
    cdef int32_t j
    decided_at = np.full(width, -1, dtype=np.int64)
    decided = np.zeros(width, dtype=np.uint8)
    out = np.zeros(indices.shape[0], dtype=np.uint8)
    cdef int64_t[::1] row_of = decided_at
    cdef uint8_t[::1] stays = decided
    cdef uint8_t[::1] keep = out
    with nogil:
        for i in range(n):
            key = row_key(seed, start + i)
            left = hidden
            open_columns = width
            for k in range(indptr[i], indptr[i + 1]):
                j = position[indices[k]]
                if row_of[j] != i:
                    row_of[j] = i
                    stays[j] = uniform(key, j) * open_columns >= left
                    open_columns -= 1
                    left -= 1 - stays[j]
                keep[k] = stays[j]
    return out


def pairs(const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] position, Py_ssize_t width,
          uint64_t seed, int64_t start=0):
    """One of each two neighbouring columns (2j, 2j + 1) is hidden; the last of an odd number never."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, k
    cdef uint64_t key
    cdef int32_t j
    cdef int32_t alone = <int32_t> (width - 1) if width & 1 else -1
    out = np.empty(indices.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] keep = out
    with nogil:
        for i in range(n):
            key = row_key(seed, start + i)
            for k in range(indptr[i], indptr[i + 1]):
                j = position[indices[k]]
                # one random bit a pair, joined without a branch
                keep[k] = ((j & 1) ^ (draw(key, j >> 1) & 1)) | (j == alone)
    return out


def phased(const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] position,
           const int32_t[::1] phase, alive):
    """A row of phase p shows the columns with ``alive[p, j]``."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, k
    by_id = np.ascontiguousarray(np.asarray(alive, dtype=np.uint8)[:, np.asarray(position)])
    cdef const uint8_t[:, ::1] table = by_id
    cdef const uint8_t* shown
    out = np.empty(indices.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] keep = out
    with nogil:
        for i in range(n):
            shown = &table[phase[i], 0]
            for k in range(indptr[i], indptr[i + 1]):
                keep[k] = shown[indices[k]]
    return out


def spans(const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] position,
          const int64_t[::1] birth, const int64_t[::1] death, const double[::1] shown, uint64_t seed,
          int64_t start=0):
    """Column j lives in the rows [birth, death) and shows itself there with probability ``shown[j]``."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, k
    cdef uint64_t key
    cdef int32_t j
    out = np.zeros(indices.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] keep = out
    with nogil:
        for i in range(n):
            key = row_key(seed, start + i)
            for k in range(indptr[i], indptr[i + 1]):
                j = position[indices[k]]
                keep[k] = birth[j] <= start + i < death[j] and uniform(key, j) < shown[j]
    return out
