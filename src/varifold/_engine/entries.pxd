"""Arrays of a `State` whose entries in use are at the front, in order."""

from libc.string cimport memmove, memset

from varifold._engine.state cimport State

cdef inline void cut_entries(State state, Py_ssize_t at, Py_ssize_t count, Py_ssize_t used) noexcept nogil:
    """Remove `count` of the `used` entries from every array; those behind move up, and the end is zero."""
    cdef int i
    cdef Py_ssize_t per
    cdef char* block
    for i in range(state.count):
        per = state.bytes_per_entry(&state.array[i])
        block = <char*> state.array[i].block[0]
        memmove(block + at * per, block + (at + count) * per, (used - at - count) * per)
        memset(block + (used - count) * per, 0, count * per)
