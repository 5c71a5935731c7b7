"""One instance in the forms that experts ask for, and a memory of the instance seen last.

Room is made when the space grows, so that nothing is allocated while predicting or learning.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from varifold._engine.view cimport View
from varifold._numeric.memory cimport resize

cdef struct InstanceViews:
    Py_ssize_t room
    View columns           # presence as an instance of its own
    View known             # the instance without its new slots
    View last              # a copy of the instance seen last
    int32_t* slots         # [4][room]: of columns, of known, of last, columns of last
    double* numbers        # [5][room]: ones, x and raw of known, x and raw of last
    uint8_t* is_new        # [room] zeros


cdef inline int views_reserve(InstanceViews* l, Py_ssize_t room) noexcept nogil:
    """Room for instances of fewer slots than this; -1 without memory, and all but the last instance is as before."""
    cdef Py_ssize_t i
    if room <= l.room:
        return 0
    l.last.n = -1
    if (resize(<void**> &l.slots, 4 * room * sizeof(int32_t)) < 0
            or resize(<void**> &l.numbers, 5 * room * sizeof(double)) < 0
            or resize(<void**> &l.is_new, room) < 0):
        return -1
    for i in range(room):
        l.numbers[i] = 1.0
    memset(l.is_new, 0, room)
    l.room = room
    return 0


cdef inline void views_free(InstanceViews* l) noexcept nogil:
    free(l.slots)
    free(l.numbers)
    free(l.is_new)


cdef inline View* as_columns(InstanceViews* l, View* v) noexcept nogil:
    """Which columns are present, as an instance of ones with the intercept first."""
    cdef View* p = &l.columns
    p[0] = v[0]
    p.slot = l.slots
    p.slot[0] = 0
    memcpy(p.slot + 1, v.column, v.columns * sizeof(int32_t))
    p.n = v.columns + 1
    p.x = l.numbers
    p.raw = l.numbers
    p.is_new = l.is_new
    return p


cdef inline View* without_new(InstanceViews* l, View* v) noexcept nogil:
    """The instance as it was predicted: slots that are new this round are left out."""
    cdef Py_ssize_t i, n = 0
    cdef View* p = &l.known
    for i in range(v.n):
        if v.is_new[i] and v.slot[i] != 0:
            break
    else:
        return v
    p[0] = v[0]
    p.slot = l.slots + l.room
    p.x = l.numbers + l.room
    p.raw = l.numbers + 2 * l.room
    p.is_new = l.is_new
    for i in range(v.n):
        if v.is_new[i] and v.slot[i] != 0:
            continue
        p.slot[n] = v.slot[i]
        p.x[n] = v.x[i]
        p.raw[n] = v.raw[i]
        n += 1
    p.n = n
    return p


cdef inline bint seen_last(InstanceViews* l, View* v) noexcept nogil:
    """Whether this is, to the last bit, the instance kept by keep_last()."""
    return (l.last.n == v.n and l.last.columns == v.columns and l.last.step == v.step and l.last.known == v.known
            and memcmp(l.last.slot, v.slot, v.n * sizeof(int32_t)) == 0
            and memcmp(l.last.x, v.x, v.n * sizeof(double)) == 0
            and memcmp(l.last.raw, v.raw, v.n * sizeof(double)) == 0
            and memcmp(l.last.column, v.column, v.columns * sizeof(int32_t)) == 0)


cdef inline void keep_last(InstanceViews* l, View* v) noexcept nogil:
    """Copy the instance, so that seen_last() can tell it again."""
    l.last = v[0]
    l.last.slot = l.slots + 2 * l.room
    l.last.column = l.slots + 3 * l.room
    l.last.x = l.numbers + 3 * l.room
    l.last.raw = l.numbers + 4 * l.room
    memcpy(l.last.slot, v.slot, v.n * sizeof(int32_t))
    memcpy(l.last.column, v.column, v.columns * sizeof(int32_t))
    memcpy(l.last.x, v.x, v.n * sizeof(double))
    memcpy(l.last.raw, v.raw, v.n * sizeof(double))


cdef inline void forget_last(InstanceViews* l) noexcept nogil:
    """What was found for the instance kept no longer holds."""
    l.last.n = -1
