"""Memory of the feature forests by slot, freed when a feature vanishes.

Blocks for features that an instance brings are taken in prepare(), before anything changes, and wait in pools.
"""

from libc.math cimport log1p
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport Model
from varifold._engine.names.table cimport INDICATOR, NUMERIC
from varifold._engine.names.space cimport Seen, seen_count, seen_first, seen_last
from varifold._numeric.heap cimport heap_drop, heap_key, heap_touch
from varifold._numeric.memory cimport allocate, out_of_memory, resize
from varifold.forest._pool cimport pool_empty, pool_free, pool_reserve, pool_take
from varifold.forest._tdigest cimport FIRST_CAPACITY, Digest, Point, digest_clear, digest_is_full, digest_reserve
from varifold.forest._vanishing cimport Presence, presence_mark, soonest, vanishes

from varifold._engine.state import per_class, per_slot

cdef int MANY_LEVELS = 64    # a column with more levels than this drops its vanished ones


cdef int canonical_width(int classes) noexcept nogil:
    """Return the number of classes that rows are saved for: 2, 4, 8, ..."""
    cdef int wide = 2 if classes else 0
    while wide < classes:
        wide *= 2
    return wide


cdef void copy_rows(const double* source, int head, int wide, double* target, int new_head, int new_wide,
                    int rows) noexcept nogil:
    """Copy a block of `head` numbers and rows of 1 + wide numbers to a layout for another number of classes."""
    cdef int k
    memcpy(target, source, min(head, new_head) * sizeof(double))
    for k in range(rows):
        memcpy(target + new_head + k * (1 + new_wide), source + head + k * (1 + wide),
               (1 + min(wide, new_wide)) * sizeof(double))


cdef class FeatureStates(Model):
    """Hold the state of each feature and the deadlines at which to test whether it vanished."""

    def __cinit__(self):
        self.prepares = True
        self.arrays.scratch_bytes(<void**> &self.states, sizeof(FeatureState), per_slot())
        self.arrays.scratch(&self.heap.item, per_slot())
        self.arrays.scratch(&self.heap.place, per_slot())
        self.arrays.scratch(&self.mass, per_class())
        self.heap.stride = sizeof(FeatureState) // sizeof(double)

    def __dealloc__(self):
        cdef Py_ssize_t u
        for u in range(self.capacity):
            self.clear(<int32_t> u)
        pool_free(&self.rings)
        pool_free(&self.digests)
        pool_free(&self.points)
        pool_free(&self.forests)
        pool_free(&self.levels)

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if capacity > self.evicted_capacity:
            if resize(<void**> &self.evicted, capacity * sizeof(int32_t)) < 0:
                raise MemoryError
            self.evicted_capacity = capacity
        try:
            Model.grow(self, capacity)
        finally:
            self.heap.key = &self.states[0].deadline if self.states != NULL else NULL
        self.heap.capacity = self.capacity
        return 0

    cdef int reserve_class(self) except -1:
        Model.reserve_class(self)
        if self.classes == self.wide:
            self.widen(canonical_width(self.classes + 1))
        return 0

    cdef int add_class(self) except -1:
        self.reserve_class()
        return Model.add_class(self)

    cdef int widen(self, int wide) except -1:
        """Change the layout of all blocks to this many classes; on failure nothing changes."""
        cdef int old = self.wide, J = self.stumps
        cdef Py_ssize_t u, k
        cdef bint fits = True
        cdef FeatureState* state
        cdef void** new = <void**> allocate((3 * self.capacity + 1) * sizeof(void*))
        if new == NULL:
            raise MemoryError
        for u in range(self.capacity):
            state = &self.states[u]
            if state.digest != NULL:
                new[3 * u] = allocate(wide * sizeof(Digest))
                fits = fits and new[3 * u] != NULL
            if state.forest != NULL:
                new[3 * u + 1] = allocate((2 * J + (J + 1) * (1 + wide)) * sizeof(double))
                fits = fits and new[3 * u + 1] != NULL
            if state.level != NULL:
                new[3 * u + 2] = allocate((2 * wide + 1) * sizeof(double))
                fits = fits and new[3 * u + 2] != NULL
            if not fits:
                break
        if not fits:
            for k in range(3 * self.capacity):
                free(new[k])
            free(new)
            raise MemoryError
        for u in range(self.capacity):
            state = &self.states[u]
            if state.digest != NULL:
                memcpy(new[3 * u], state.digest, old * sizeof(Digest))
            if state.forest != NULL:
                copy_rows(state.forest, 2 * J, old, <double*> new[3 * u + 1], 2 * J, wide, J + 1)
            if state.level != NULL:
                copy_rows(state.level, old, old, <double*> new[3 * u + 2], wide, wide, 1)
            free(state.digest)
            free(state.forest)
            free(state.level)
            state.digest = <Digest*> new[3 * u]
            state.forest = <double*> new[3 * u + 1]
            state.level = <double*> new[3 * u + 2]
        free(new)
        self.wide = wide
        self.size_pools(wide)
        return 0

    cdef void size_pools(self, int wide) noexcept nogil:
        """Set the number of classes of blocks allocated from now on."""
        pool_empty(&self.rings, self.rule.words * sizeof(uint64_t))
        pool_empty(&self.digests, wide * sizeof(Digest))
        pool_empty(&self.points, FIRST_CAPACITY * sizeof(Point))
        pool_empty(&self.forests, (2 * self.stumps + (self.stumps + 1) * (1 + wide)) * sizeof(double))
        pool_empty(&self.levels, (2 * wide + 1) * sizeof(double))

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Allocate the blocks and digest capacity that learning this instance may need."""
        cdef Py_ssize_t i, rings = n_new, digests = n_new, points = n_new, levels = n_new
        cdef Py_ssize_t forests = n_new if self.grace <= 1 else 0
        cdef FeatureState* state
        cdef Digest* d
        if y < 0:
            with gil:
                self.reserve_class()
        for i in range(n):
            state = &self.states[slots[i]]
            if self.space.kind[slots[i]] & INDICATOR:
                levels += state.level == NULL
                rings += self.states[self.space.column[slots[i]]].presence.count == 0
                continue
            rings += state.presence.count == 0
            forests += state.forest == NULL and state.numbers + 1 >= self.grace
            digests += state.digest == NULL
            if state.digest == NULL or y < 0 or state.digest[y].capacity == 0:
                points += 1
                continue
            d = &state.digest[y]
            if digest_is_full(d) and not digest_reserve(d, 2 * d.capacity):
                return out_of_memory()
            self.largest = max(self.largest, d.capacity)
        self.largest = max(self.largest, <Py_ssize_t> FIRST_CAPACITY)
        pool_reserve(&self.rings, rings)
        pool_reserve(&self.digests, digests)
        pool_reserve(&self.points, points)
        pool_reserve(&self.forests, forests)
        pool_reserve(&self.levels, levels)
        return 0

    # ---------------------------------------------------------------- coming and going

    cdef void see(self, int32_t u, int64_t t) noexcept nogil:
        """Record that the feature is present in round t; move its deadline forward if it may now vanish sooner."""
        cdef FeatureState* state = &self.states[u]
        cdef Presence* p = &state.presence
        cdef int64_t sooner
        if p.count == 0:
            state.weight = 1.0
            p.ring = <uint64_t*> pool_take(&self.rings)
        elif p.last == t:
            return
        presence_mark(p, &self.rule, t)
        if self.rule.by_bound or self.rule.by_gap:
            sooner = soonest(p, &self.rule, t)
            if self.heap.place[u] == 0 or state.deadline > sooner:
                state.deadline = <double> sooner
                heap_touch(&self.heap, u)

    cdef void prune(self, int64_t t) noexcept nogil:
        """Test the features that are due and prune those that have vanished (eq. 7)."""
        cdef int32_t u
        cdef int64_t due
        cdef Presence* p
        while self.heap.n and heap_key(&self.heap, self.heap.item[0]) <= t:
            u = self.heap.item[0]
            p = &self.states[u].presence
            due = soonest(p, &self.rule, t) if p.last >= t else vanishes(p, &self.rule, t)
            if due == t:
                self.vanish(u)
            elif due < 0:
                heap_drop(&self.heap, u)
            else:
                self.states[u].deadline = <double> due
                heap_touch(&self.heap, u)

    cdef void prune_levels(self, int32_t u, int32_t present, int64_t t) noexcept nogil:
        """Prune vanished levels of a column that is still present, once it has many levels.

        Without this a column whose strings change for ever (codes, versions, ids) would hold every one it ever had.
        """
        cdef int32_t s = self.states[u].first_level, following
        cdef Py_ssize_t count = 0
        while s:
            count += 1
            s = self.states[s].next_level
        if count <= MANY_LEVELS:
            return
        s = self.states[u].first_level
        while s:
            following = self.states[s].next_level
            if s != present and self.level_vanished(s, t):
                self.unlink(s)
                self.mark_evicted(s)
                self.pruned += 1
            s = following

    cdef bint level_vanished(self, int32_t s, int64_t t) noexcept nogil:
        """Apply the rule of gap_exceeded() to a level, with the occurrences that the space recorded."""
        cdef Seen* seen = &self.space.seen[s]
        cdef int64_t gap = t - seen_last(seen), age = seen_last(seen) - seen_first(seen) + 1 + self.rule.window
        return gap >= self.rule.window and gap * log1p(-<double> seen_count(seen) / age) < self.rule.log_delta

    cdef void vanish(self, int32_t u) noexcept nogil:
        """Remove a feature's state, its name and those of its levels."""
        cdef int32_t s = self.states[u].first_level
        if self.space.kind[u] & NUMERIC:
            self.mark_evicted(u)
        while s:
            self.mark_evicted(s)
            s = self.states[s].next_level
        self.clear(u)
        self.pruned += 1

    cdef void clear(self, int32_t u) noexcept nogil:
        """Reset a slot to empty, together with a column's levels."""
        cdef FeatureState* state = &self.states[u]
        cdef int32_t s = state.first_level, following
        heap_drop(&self.heap, u)
        while s:
            following = self.states[s].next_level
            free(self.states[s].level)
            self.states[s].level = NULL
            self.states[s].next_level = 0
            s = following
        self.clear_numbers(state)
        free(state.level)
        free(state.presence.ring)
        memset(state, 0, sizeof(FeatureState))

    cdef void clear_numbers(self, FeatureState* state) noexcept nogil:
        """Free a feature's numeric state; levels of the same name are kept."""
        cdef int c
        if state.digest != NULL:
            for c in range(self.wide):
                digest_clear(&state.digest[c])
        free(state.digest)
        free(state.forest)
        state.digest = NULL
        state.forest = NULL
        state.numbers = 0
        state.refreshed = 0

    cdef void link(self, int32_t s, int32_t u) noexcept nogil:
        """Allocate a block for level s at the head of column u's list."""
        self.states[s].level = <double*> pool_take(&self.levels)
        self.states[s].next_level = self.states[u].first_level
        self.states[u].first_level = s

    cdef void unlink(self, int32_t s) noexcept nogil:
        """Free the block of level s."""
        cdef int32_t u = self.space.column[s]
        cdef int32_t* place = &self.states[u].first_level
        while place[0] != s:
            place = &self.states[place[0]].next_level
        place[0] = self.states[s].next_level
        self.states[s].next_level = 0
        free(self.states[s].level)
        self.states[s].level = NULL

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int32_t u
        if self.space.kind[slot] & INDICATOR:
            u = self.space.column[slot]
            if self.states[slot].level != NULL:
                self.unlink(slot)
            if self.states[u].first_level == 0 and not self.space.kind[u] & NUMERIC:
                self.clear(u)
        elif self.states[slot].first_level:
            self.clear_numbers(&self.states[slot])
        else:
            self.clear(slot)
