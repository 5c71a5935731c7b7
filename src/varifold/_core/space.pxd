from libc.stdint cimport int32_t, int64_t

from varifold._core.names cimport NameTable

cdef struct Seen:
    int64_t first    # step of the first learn that held the feature
    int64_t last
    int64_t count    # learns that held it; 0 means the slot is new this round

cdef class Space(NameTable):
    cdef Seen* seen
    cdef public int64_t evictions   # slots given up so far; bindings of blocks watch it
