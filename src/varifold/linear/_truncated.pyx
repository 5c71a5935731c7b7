"""Rules that keep only their largest weights: a heap a problem finds the smallest in O(log known)."""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._numeric.heap cimport Heap, heap_drop, heap_order, heap_touch
from varifold._engine.one_vs_rest cimport BinaryRule, at


cdef class SparseRule(BinaryRule):
    """The first number of a slot is its weight up to a factor common to all; the heap holds the slots that are `held`.

    The intercept is never in the heap. A subclass sets `sparse`, calls `place` for each weight it changed and then
    `keep_largest`, and says in `clear` what giving up a weight means.
    """

    def __dealloc__(self):
        self.free_heaps()

    cdef void free_heaps(self) noexcept:
        cdef int c
        for c in range(self.heaps):
            free(self.heap[c].item)
            free(self.heap[c].place)
        free(self.heap)
        self.heap = NULL
        self.heaps = 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        BinaryRule.grow(self, capacity)
        if self.sparse:
            self.fit_heaps()
        return 0

    cdef int add_class(self) except -1:
        cdef int old = self.problems
        BinaryRule.add_class(self)
        if self.sparse and self.problems != old:
            self.refill_heaps()
        return 0

    cdef int fit_heaps(self) except -1:
        """A heap a problem, each with room for every slot."""
        cdef int c
        cdef Heap* h
        if self.heaps < self.problems:
            self.heap = <Heap*> realloc(self.heap, self.problems * sizeof(Heap))
            if self.heap == NULL:
                raise MemoryError
            memset(self.heap + self.heaps, 0, (self.problems - self.heaps) * sizeof(Heap))
            self.heaps = self.problems
        for c in range(self.heaps):
            h = &self.heap[c]
            if h.capacity < self.capacity:
                h.item = <int32_t*> realloc(h.item, self.capacity * sizeof(int32_t))
                h.place = <int32_t*> realloc(h.place, self.capacity * sizeof(int32_t))
                if h.item == NULL or h.place == NULL:
                    raise MemoryError
                memset(h.place + h.capacity, 0, (self.capacity - h.capacity) * sizeof(int32_t))
                h.capacity = self.capacity
        return 0

    cdef int refill_heaps(self) except -1:
        """The heaps of the present state."""
        cdef int c
        cdef Py_ssize_t slot
        self.free_heaps()
        self.fit_heaps()
        for c in range(self.problems):
            self.aim(c)
            for slot in range(1, self.capacity):
                if self.held(<int32_t> slot, c):
                    heap_touch(&self.heap[c], <int32_t> slot)
        return 0

    cdef inline Heap* aim(self, int c) noexcept nogil:
        """The problem's heap, its keys pointing at the weights where they are now."""
        cdef Heap* h = &self.heap[c]
        h.key = self.state + c * self.width
        h.stride = self.stride
        return h

    cdef bint held(self, int32_t slot, int c) noexcept nogil:
        """Whether a slot takes up room among the weights kept: its weight is not 0."""
        return at(self, slot, c)[0] != 0.0

    cdef void place(self, int32_t slot, int c) noexcept nogil:
        """Set a slot right in the heap; at once after its weight changed, before another does."""
        if slot == 0:
            return
        if self.held(slot, c):
            heap_touch(self.aim(c), slot)
        else:
            heap_drop(self.aim(c), slot)

    cdef void reorder(self, int c) noexcept nogil:
        """Set the whole heap right after weights vanished below what a double can hold."""
        if self.sparse:
            heap_order(self.aim(c))

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        at(self, slot, c)[0] = 0.0

    cdef void keep_largest(self, Py_ssize_t keep, int c) noexcept nogil:
        """Give up the smallest weights until `keep` are left, at least one."""
        cdef Heap* h = self.aim(c)
        cdef int32_t slot
        while h.n > keep and h.n > 1:
            slot = h.item[0]
            heap_drop(h, slot)
            self.clear(slot, c)

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int c
        for c in range(self.problems):
            if self.sparse:
                heap_drop(self.aim(c), slot)
            self.clear(slot, c)
        BinaryRule.forget(self, slot)

    def fill(self, dict arrays, Py_ssize_t capacity):
        BinaryRule.fill(self, arrays, capacity)
        if self.sparse:
            self.refill_heaps()

    def nbytes(self):
        return BinaryRule.nbytes(self) + sum(2 * self.heap[c].capacity * sizeof(int32_t) for c in range(self.heaps))
