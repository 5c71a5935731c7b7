"""Sparse weights of a rule: the l1 ball of OVFM's eq. 12, and the truncation after it. The intercept is left out."""

from libc.math cimport ceil, fabs
from libc.stdint cimport int32_t

from varifold._engine.models.one_vs_rest cimport BinaryRule, at
from varifold._numeric.selection cimport select

# A slot's weight is the sum of its first `parts` numbers.

cdef inline void project(BinaryRule rule, int c, int parts, Py_ssize_t slots, double radius) noexcept nogil:
    """Scale a problem's weights into the l1 ball of this radius."""
    cdef Py_ssize_t slot, i
    cdef double total = 0.0
    cdef double* s
    for slot in range(1, slots):
        total += fabs(rule.coefficient(<int32_t> slot, c))
    if total <= radius:
        return
    for slot in range(1, slots):
        s = at(rule, <int32_t> slot, c)
        for i in range(parts):
            s[i * rule.plane] *= radius / total


cdef inline void truncate(BinaryRule rule, int c, int parts, Py_ssize_t slots, Py_ssize_t known, double share,
                          double* sizes) noexcept nogil:
    """Keep the largest weights of a problem, a share of the `known` features, and set the others to zero.

    Among equals, up to rounding, the earlier slots are kept. `sizes` is scratch with an entry for every slot.
    """
    cdef Py_ssize_t slot, i, n = 0, keep = <Py_ssize_t> ceil(share * known - 1e-9), above = 0
    cdef double size, least, tie = 1e-9
    for slot in range(1, slots):
        size = fabs(rule.coefficient(<int32_t> slot, c))
        if size > 0.0:
            sizes[n] = size
            n += 1
    if n <= keep:
        return
    least = select(sizes, n, n - keep)
    for i in range(n):
        above += sizes[i] > least * (1.0 + tie)
    for slot in range(1, slots):
        size = fabs(rule.coefficient(<int32_t> slot, c))
        if size > least * (1.0 + tie) or size == 0.0:
            continue
        if size >= least * (1.0 - tie) and above < keep:
            above += 1
            continue
        for i in range(parts):
            at(rule, <int32_t> slot, c)[i * rule.plane] = 0.0
