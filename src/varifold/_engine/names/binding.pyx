"""Map the ids of a block's vocabulary to slots of a learner's space."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free

from varifold._engine.names.vocabulary cimport Vocabulary
from varifold._engine.names.table cimport INDICATOR, NUMERIC
from varifold._engine.names.reading cimport conflict_error
from varifold._engine.names.space cimport Space
from varifold._numeric.memory cimport resize_zeroed


cdef class Binding:
    """Vocabulary id -> slot of a space, and back; an eviction removes its slot.

    Columns are bound as well: a string that the space has not seen has no slot, but its column may.
    """

    def __cinit__(self, Vocabulary vocabulary):
        self.vocabulary = vocabulary

    def __dealloc__(self):
        free(self.slot)
        free(self.source)
        free(self.column)
        free(self.column_slot)
        free(self.column_source)

    cdef int fit(self, Space space) except -1:
        """Reserve memory for new ids and slots, and look up the ids that had no slot."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef size_t old = self.ids * sizeof(int32_t), new = self.vocabulary.size * sizeof(int32_t)
        if self.vocabulary.size > self.ids:
            if (resize_zeroed(<void**> &self.slot, old, new) < 0 or resize_zeroed(<void**> &self.column, old, new) < 0
                    or resize_zeroed(<void**> &self.column_slot, old, new) < 0):
                raise MemoryError
        if space.capacity > self.slots:
            old, new = self.slots * sizeof(int32_t), space.capacity * sizeof(int32_t)
            if (resize_zeroed(<void**> &self.source, old, new) < 0
                    or resize_zeroed(<void**> &self.column_source, old, new) < 0):
                raise MemoryError
            self.slots = space.capacity
        for i in range(1, self.vocabulary.size):
            self.column[i] = self.vocabulary.column[i]
            self.fit_column(space, <int32_t> i)
            if self.slot[i] == 0:
                s = slot_of(space, self.vocabulary, <int32_t> i)
                if s > 0:
                    self.slot[i] = s
                    self.source[s] = <int32_t> i
        self.ids = self.vocabulary.size
        return 0

    cdef int fit_column(self, Space space, int32_t i) except -1:
        """Look up the column of a vocabulary id, if it had no slot."""
        cdef int32_t c = self.column[i], s
        if self.column_slot[c] == 0:
            s = space.find(self.vocabulary.key[c])
            if s > 0 and not space.kind[s] & INDICATOR:
                self.column_slot[c] = s
                self.column_source[s] = c
        return 0

    cdef void release(self, int32_t slot) noexcept:
        """Remove an evicted slot."""
        if slot < self.slots:
            self.slot[self.source[slot]] = 0
            self.source[slot] = 0

    cdef void release_column(self, int32_t slot) noexcept:
        """Remove a column that was evicted with its last feature."""
        if slot < self.slots:
            self.column_slot[self.column_source[slot]] = 0
            self.column_source[slot] = 0


cdef int32_t slot_of(Space space, Vocabulary vocabulary, int32_t i) except -2:
    """Return the slot of a vocabulary id, 0 if the space does not know it; raise if names clash."""
    cdef int32_t s
    cdef uint8_t kind = vocabulary.kind[i]
    s = space.find(vocabulary.key[i])
    if s < 0:
        return 0
    if kind & INDICATOR:
        # the columns 1 and "1" have values of the same names
        if not space.kind[s] & INDICATOR or space.find(vocabulary.key[vocabulary.column[i]]) != space.column[s]:
            raise conflict_error(<object> vocabulary.key[i], 1)
        return s
    if space.kind[s] & INDICATOR:
        raise conflict_error(<object> vocabulary.key[i], 1)
    return s if kind & NUMERIC and space.kind[s] & NUMERIC else 0
