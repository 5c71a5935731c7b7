from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t

from varifold._engine.space cimport Space

# A name as it was spelled between quotes, and the slot it had last.
cdef struct Entry:
    const char* text      # the spelling with its closing quote, inside `raw`
    uint32_t length       # without the quote
    uint32_t hash
    int32_t slot
    int32_t next          # the entry that followed it in the line before, -1 for none
    bint escaped
    PyObject* raw         # bytes, owned
    PyObject* key         # the name, owned


cdef class JsonNames:
    cdef Entry* entry
    cdef Py_ssize_t size, room
    cdef int32_t* table           # open addressing: 0 empty, else entry + 1
    cdef Py_ssize_t mask
    cdef int32_t first, before    # the entry that the last line started with; the one before in this line

    cdef void start(self) noexcept
    cdef int32_t guess(self, const char* p, const char* end) noexcept
    cdef int32_t find(self, const char* p, uint32_t n, uint32_t h) noexcept
    cdef int32_t add(self, const char* p, uint32_t n, bint escaped, object key, int32_t slot) except -2
    cdef int32_t slot_of(self, int32_t e, Space space) except -2
    cdef int prepare(self, Py_ssize_t names) except -1
    cdef void follow(self, int32_t e) noexcept
    cdef void clear(self) noexcept


cdef uint32_t hash_text(const char* p, Py_ssize_t n) noexcept
cdef object decoded(const char* p, Py_ssize_t n, bint escaped)
