"""An instance in other forms, for experts that see a part of it, and a copy of the last instance.

Memory is reserved when the space grows, so that nothing is allocated while predicting or learning.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from varifold._engine.view cimport View
from varifold._numeric.memory cimport resize

cdef struct InstanceViews:
    Py_ssize_t capacity
    View columns           # which columns are present, as an instance
    View known             # the instance without its new slots
    View last              # a copy of the last instance; n = -1 for none
    int32_t* slots         # [4][capacity]: of columns, of known, of last, columns of last
    double* values         # [5][capacity]: ones, x and raw of known, x and raw of last
    uint8_t* is_new        # [capacity]: zeros


cdef inline int views_reserve(InstanceViews* s, Py_ssize_t capacity) noexcept nogil:
    """Reserve memory for instances with fewer entries than this; -1 without memory. The last instance is forgotten."""
    cdef Py_ssize_t i
    if capacity <= s.capacity:
        return 0
    s.last.n = -1
    if (resize(<void**> &s.slots, 4 * capacity * sizeof(int32_t)) < 0
            or resize(<void**> &s.values, 5 * capacity * sizeof(double)) < 0
            or resize(<void**> &s.is_new, capacity) < 0):
        return -1
    for i in range(capacity):
        s.values[i] = 1.0
    memset(s.is_new, 0, capacity)
    s.capacity = capacity
    return 0


cdef inline void views_free(InstanceViews* s) noexcept nogil:
    free(s.slots)
    free(s.values)
    free(s.is_new)


cdef inline View* as_columns(InstanceViews* s, View* v) noexcept nogil:
    """Return which columns are present, as an instance of ones with the intercept first."""
    cdef View* p = &s.columns
    p[0] = v[0]
    p.slot = s.slots
    p.slot[0] = 0
    memcpy(p.slot + 1, v.column, v.columns * sizeof(int32_t))
    p.n = v.columns + 1
    p.x = s.values
    p.raw = s.values
    p.is_new = s.is_new
    return p


cdef inline View* without_new(InstanceViews* s, View* v) noexcept nogil:
    """Return the instance as it was predicted: without slots that are new."""
    cdef Py_ssize_t i, n = 0
    cdef View* p = &s.known
    for i in range(v.n):
        if v.is_new[i] and v.slot[i] != 0:
            break
    else:
        return v
    p[0] = v[0]
    p.slot = s.slots + s.capacity
    p.x = s.values + s.capacity
    p.raw = s.values + 2 * s.capacity
    p.is_new = s.is_new
    for i in range(v.n):
        if v.is_new[i] and v.slot[i] != 0:
            continue
        p.slot[n] = v.slot[i]
        p.x[n] = v.x[i]
        p.raw[n] = v.raw[i]
        n += 1
    p.n = n
    return p


cdef inline bint seen_last(InstanceViews* s, View* v) noexcept nogil:
    """Return whether this is, to the bit, the instance of keep_last()."""
    return (s.last.n == v.n and s.last.columns == v.columns and s.last.step == v.step and s.last.known == v.known
            and memcmp(s.last.slot, v.slot, v.n * sizeof(int32_t)) == 0
            and memcmp(s.last.x, v.x, v.n * sizeof(double)) == 0
            and memcmp(s.last.raw, v.raw, v.n * sizeof(double)) == 0
            and memcmp(s.last.column, v.column, v.columns * sizeof(int32_t)) == 0)


cdef inline void keep_last(InstanceViews* s, View* v) noexcept nogil:
    """Copy the instance, so that seen_last() recognises it."""
    s.last = v[0]
    s.last.slot = s.slots + 2 * s.capacity
    s.last.column = s.slots + 3 * s.capacity
    s.last.x = s.values + 3 * s.capacity
    s.last.raw = s.values + 4 * s.capacity
    memcpy(s.last.slot, v.slot, v.n * sizeof(int32_t))
    memcpy(s.last.column, v.column, v.columns * sizeof(int32_t))
    memcpy(s.last.x, v.x, v.n * sizeof(double))
    memcpy(s.last.raw, v.raw, v.n * sizeof(double))


cdef inline void forget_last(InstanceViews* s) noexcept nogil:
    """Forget the instance of keep_last(): predictions for it are out of date."""
    s.last.n = -1
