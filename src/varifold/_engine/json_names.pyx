"""Names as JSON lines spell them: from the bytes between two quotes to a slot, without making a str.

Lines of one stream name their features in the same order. So the name that followed in the line before is tried first;
only another one is hashed. The slot is a hint: it counts while the space has the very name object there.
"""

from json.decoder import scanstring

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from varifold._engine.space cimport Space
from varifold._numeric.memory cimport resize

cdef enum:
    PROBES = 16      # places looked at for one name, so that names chosen to collide cost no more than that
    SPARE = 256      # entries beyond twice the features before all are dropped: old spellings, evicted names


cdef uint32_t hash_text(const char* p, Py_ssize_t n) noexcept:
    cdef uint64_t h = 0x9E3779B97F4A7C15ULL ^ <uint64_t> n
    cdef uint64_t word = 0
    while n >= 8:
        memcpy(&word, p, 8)
        h = (h ^ word) * 0xBF58476D1CE4E5B9ULL
        h ^= h >> 29
        p += 8
        n -= 8
    if n:
        word = 0
        memcpy(&word, p, n)
        h = (h ^ word) * 0xBF58476D1CE4E5B9ULL
    return <uint32_t> (h >> 32)


cdef object decoded(const char* p, Py_ssize_t n, bint escaped):
    """The str that json.loads makes of the bytes between two quotes; what is none raises ValueError."""
    text = PyUnicode_DecodeUTF8(p, n, "surrogatepass")
    if not escaped:
        return text
    return scanstring(text + '"', 0)[0]


cdef class JsonNames:
    """Spellings of known names; holds nothing that a space of names would not give again."""

    def __cinit__(self):
        self.first = -1
        self.before = -1

    def __dealloc__(self):
        self.clear()
        free(self.entry)
        free(self.table)

    cdef void clear(self) noexcept:
        """Drop all spellings."""
        cdef Py_ssize_t e
        for e in range(self.size):
            Py_DECREF(<object> self.entry[e].raw)
            Py_DECREF(<object> self.entry[e].key)
        self.size = 0
        self.first = -1
        self.before = -1
        if self.table != NULL:
            memset(self.table, 0, (self.mask + 1) * sizeof(int32_t))

    cdef int prepare(self, Py_ssize_t names) except -1:
        """Room for the spellings of so many names, and for a few more; may drop all that are held."""
        cdef Py_ssize_t room = 2 * names + SPARE, slots = 64
        if self.size >= room:
            self.clear()
        if room <= self.room:
            return 0
        room *= 2
        while slots < 4 * room:
            slots *= 2
        if (resize(<void**> &self.entry, room * sizeof(Entry)) < 0
                or resize(<void**> &self.table, slots * sizeof(int32_t)) < 0):
            raise MemoryError
        self.room = room
        self.mask = slots - 1
        self.clear()
        return 0

    # ---------------------------------------------------------------- one line

    cdef void start(self) noexcept:
        """A new line."""
        self.before = -1

    cdef int32_t guess(self, const char* p, const char* end) noexcept:
        """The entry that followed last time, if it is the name at p; else -1."""
        cdef int32_t e = self.entry[self.before].next if self.before >= 0 else self.first
        cdef Entry* entry
        if e < 0:
            return -1
        entry = &self.entry[e]
        if end - p <= <Py_ssize_t> entry.length or memcmp(p, entry.text, entry.length + 1) != 0:
            return -1
        return e

    cdef void follow(self, int32_t e) noexcept:
        """Entry e was found: it is the one to expect here in the next line."""
        if self.before >= 0:
            self.entry[self.before].next = e
        else:
            self.first = e
        self.before = e

    cdef int32_t find(self, const char* p, uint32_t n, uint32_t h) noexcept:
        """The entry of the n bytes at p, or -1."""
        cdef Py_ssize_t j = h & self.mask
        cdef int32_t e
        cdef int k
        for k in range(PROBES):
            e = self.table[j] - 1
            if e < 0:
                return -1
            if self.entry[e].hash == h and self.entry[e].length == n and memcmp(p, self.entry[e].text, n) == 0:
                return e
            j = (j + 1) & self.mask
        return -1

    cdef int32_t add(self, const char* p, uint32_t n, bint escaped, object key, int32_t slot) except -2:
        """Keep a spelling of a known name; -1 when there is no place for it."""
        cdef uint32_t h = hash_text(p, n)
        cdef Py_ssize_t j = h & self.mask
        cdef int k = 0
        cdef Entry* entry
        while self.table[j] != 0:
            j = (j + 1) & self.mask
            k += 1
            if k == PROBES:
                return -1
        if self.size >= self.room:
            return -1
        raw = PyBytes_FromStringAndSize(p, n + 1)
        Py_INCREF(raw)
        Py_INCREF(key)
        entry = &self.entry[self.size]
        entry.text = PyBytes_AS_STRING(raw)
        entry.length = n
        entry.hash = h
        entry.slot = slot
        entry.next = -1
        entry.escaped = escaped
        entry.raw = <PyObject*> raw
        entry.key = <PyObject*> key
        self.size += 1
        self.table[j] = <int32_t> self.size
        return <int32_t> (self.size - 1)

    cdef int32_t slot_of(self, int32_t e, Space space) except -2:
        """The slot of an entry's name now, -1 when the space no longer has it."""
        cdef Entry* entry = &self.entry[e]
        cdef object old
        if 0 < entry.slot < space.size and space.key[entry.slot] == entry.key:
            return entry.slot
        entry.slot = space.find(entry.key)
        if entry.slot > 0:
            old = <object> entry.key
            entry.key = space.key[entry.slot]
            Py_INCREF(<object> entry.key)
            Py_DECREF(old)
        return entry.slot
