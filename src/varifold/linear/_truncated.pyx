"""Rules that keep only their largest weights: one heap per problem finds the smallest in O(log known)."""

from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.models.one_vs_rest cimport TOGETHER, BinaryRule, at
from varifold._engine.view cimport View
from varifold._numeric.heap cimport Heap, heap_drop, heap_order, heap_touch
from varifold._numeric.memory cimport resize, resize_zeroed


cdef class TruncatedRule(BinaryRule):
    """Rule whose first number per slot is its weight over a factor, one per problem; the heap orders slots by its size.

    The factor makes a projection one multiplication (``scale_weights``). The intercept is never in the heap. A subclass
    sets `scale` and `sparse`, calls ``update_heap`` for each weight it changed and then ``keep_largest``, and defines
    ``clear``, which sets a weight to zero.
    """

    cdef void start(self, int c) noexcept nogil:
        self.shared[c * self.globals + self.scale] = 1.0

    cdef void score_problems(self, View* v, int first, int m, double* f) noexcept nogil:
        cdef int c
        BinaryRule.score_problems(self, v, first, m, f)
        for c in range(m):
            f[c] *= self.shared[(first + c) * self.globals + self.scale]

    cdef double coefficient(self, int32_t slot, int c) noexcept nogil:
        return at(self, slot, c)[0] * self.shared[c * self.globals + self.scale]

    cdef int batch(self, View* v) noexcept nogil:
        return 1 if self.sparse else TOGETHER

    def __dealloc__(self):
        cdef Py_ssize_t c
        for c in range(self.heaps):
            free(self.heap[c].item)
            free(self.heap[c].place)
        free(self.heap)

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if self.sparse:
            self.reserve_heaps(self.problems, capacity)
        return BinaryRule.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        BinaryRule.reserve_class(self)
        if self.sparse and self.classes >= 2:
            self.reserve_heaps(self.classes + 1, self.capacity)
        return 0

    cdef int reserve_heaps(self, Py_ssize_t problems, Py_ssize_t capacity) except -1:
        """Reserve one heap per problem, each for this many slots."""
        cdef Py_ssize_t c, heaps
        cdef Heap* h
        if problems > self.heap_capacity:
            heaps = max(problems, self.heap_capacity + self.heap_capacity // 2)
            if resize(<void**> &self.heap, heaps * sizeof(Heap)) < 0:
                raise MemoryError
            self.heap_capacity = heaps
        while self.heaps < problems:
            memset(&self.heap[self.heaps], 0, sizeof(Heap))
            self.heaps += 1
        for c in range(self.heaps):
            h = &self.heap[c]
            if h.capacity >= capacity:
                continue
            if (resize(<void**> &h.item, capacity * sizeof(int32_t)) < 0
                    or resize_zeroed(<void**> &h.place, h.capacity * sizeof(int32_t), capacity * sizeof(int32_t)) < 0):
                raise MemoryError
            h.capacity = capacity
        return 0

    cdef void split(self) noexcept nogil:
        """Copy the heap of the binary problem: the order depends on absolute weights, not on signs."""
        BinaryRule.split(self)
        if self.sparse:
            memcpy(self.heap[1].item, self.heap[0].item, self.capacity * sizeof(int32_t))
            memcpy(self.heap[1].place, self.heap[0].place, self.capacity * sizeof(int32_t))
            self.heap[1].n = self.heap[0].n

    cdef void rebuild_heaps(self) noexcept nogil:
        """Fill the empty heaps from the weights."""
        cdef int c
        cdef Py_ssize_t slot
        cdef Heap* h
        for c in range(self.problems):
            h = self.heap_of(c)
            for slot in range(1, self.capacity):
                if self.is_kept(<int32_t> slot, c):
                    heap_touch(h, <int32_t> slot)

    # ---------------------------------------------------------------- one problem

    cdef Heap* heap_of(self, int c) noexcept nogil:
        """Return the problem's heap, with its key pointer set to the current weights."""
        cdef Heap* h = &self.heap[c]
        h.key = self.state + c
        h.stride = self.stride
        return h

    cdef bint is_kept(self, int32_t slot, int c) noexcept nogil:
        """Test whether a slot counts among the weights kept: its weight is not 0."""
        return at(self, slot, c)[0] != 0.0

    cdef void update_heap(self, int32_t slot, int c) noexcept nogil:
        """Move a slot to its position in the heap; call it after each change of a weight, before the next one."""
        if slot == 0:
            return
        if self.is_kept(slot, c):
            heap_touch(self.heap_of(c), slot)
        else:
            heap_drop(self.heap_of(c), slot)

    cdef void reorder(self, int c) noexcept nogil:
        """Reorder the entire heap, after weights underflowed."""
        if self.sparse:
            heap_order(self.heap_of(c))

    cdef void clear(self, int32_t slot, int c) noexcept nogil:
        """Set a slot's weight to zero."""
        at(self, slot, c)[0] = 0.0

    cdef void scale_weights(self, int c, double factor) noexcept nogil:
        """Multiply all weights by a factor; before it underflows, the common factor is multiplied into them."""
        cdef double* scale = &self.shared[c * self.globals + self.scale]
        cdef Py_ssize_t i
        scale[0] *= factor
        if scale[0] < 1e-100:
            for i in range(self.capacity):
                at(self, <int32_t> i, c)[0] *= scale[0]
            scale[0] = 1.0
            self.reorder(c)    # weights that became 0 are equal now

    cdef void keep_largest(self, Py_ssize_t keep, int c) noexcept nogil:
        """Set the smallest weights to zero until `keep` remain, at least one."""
        cdef Heap* h = self.heap_of(c)
        cdef int32_t slot
        while h.n > keep and h.n > 1:
            slot = h.item[0]
            heap_drop(h, slot)
            self.clear(slot, c)

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int c
        for c in range(self.problems):
            if self.sparse:
                heap_drop(self.heap_of(c), slot)
            self.clear(slot, c)
        BinaryRule.forget(self, slot)

    # ---------------------------------------------------------------- files

    def fill(self, dict arrays, Py_ssize_t capacity):
        BinaryRule.fill(self, arrays, capacity)
        if self.sparse:
            self.reserve_heaps(self.problems, capacity)
            self.rebuild_heaps()

    def nbytes(self):
        cdef Py_ssize_t c
        return (BinaryRule.nbytes(self) + self.heap_capacity * sizeof(Heap)
                + sum(2 * self.heap[c].capacity * sizeof(int32_t) for c in range(self.heaps)))
