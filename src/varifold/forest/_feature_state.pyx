"""Where feature forests live: blocks by slot, given back when a feature vanishes, kept and restored as arrays."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from varifold._numeric.heap cimport heap_drop, heap_key, heap_touch
from varifold._engine.model cimport Model
from varifold._engine.names cimport INDICATOR, NUMERIC
from varifold._engine.space cimport Space
from varifold.forest._tdigest cimport Digest, digest_clear, digest_reserve
from varifold.forest._vanishing cimport Presence, presence_mark, soonest, vanishes

from varifold._engine.state import checked_array, check_chains


cdef void* claim(Py_ssize_t count, Py_ssize_t size) except NULL:
    """Zeroed memory."""
    cdef void* got = calloc(count, size)
    if got == NULL:
        raise MemoryError
    return got


cdef double* relaid(double* block, int head, int new_head, int rows, int old, int new) noexcept:
    """A copy of a block of `head` numbers and rows of 1 + old in a new layout; NULL: no memory."""
    cdef double* got = <double*> calloc(new_head + rows * (1 + new), sizeof(double))
    cdef int k
    if got == NULL:
        return NULL
    memcpy(got, block, head * sizeof(double))
    for k in range(rows):
        memcpy(got + new_head + k * (1 + new), block + head + k * (1 + old), (1 + old) * sizeof(double))
    return got


def check_units(dict arrays, Py_ssize_t capacity, int stumps, Py_ssize_t words, Space space):
    """Refuse arrays that do not fit the parameters, the names or each other."""
    units = checked_array(arrays, "units", "i", (None, 13), 0, 1 << 53)
    size, wide = len(units), len(checked_array(arrays, "mass", "f", (None,), 0))
    checked_array(arrays, "weights", "f", (size, 4))
    checked_array(arrays, "sums", "f", (4,))
    checked_array(arrays, "rings", "i", (int((units[:, 2] > 0).sum()), words))
    forests = checked_array(arrays, "forests", "f", (int((units[:, 11] > 0).sum()), 2 * stumps + (stumps + 1) * (1 + wide)))
    levels = checked_array(arrays, "levels", "f", (int((units[:, 12] > 0).sum()), 2 * wide + 1))
    digests = checked_array(arrays, "digests", "f", (int((units[:, 10] > 0).sum()) * wide, 5))
    favoured = (forests[:, 2 * stumps::1 + wide], levels[:, wide:wide + 1])
    if any(rows.size and (rows.min() < -1 or rows.max() >= wide) for rows in favoured):
        raise ValueError("a row favours a class that there is not")
    if not 0 < size <= capacity or units[:, 7:9].max() >= size:
        raise ValueError("units holds numbers of features that there are not")
    first, last, seen = units[:, 0], units[:, 1], units[:, 2]
    if last.max() >= 1 << 43 or (seen > np.where(seen > 0, last - first + 1, 0)).any() or (units[:, 9] > seen).any():
        raise ValueError("units holds features seen more often than there were rounds")
    if digests.size and (digests[:, 3:].min() < 0 or (digests[:, 3:] % 1 != 0).any()):
        raise ValueError("digests holds counts that are none")
    checked_array(arrays, "points", "f", (int(2 * digests[:, 3:].sum()),))
    check_chains(units[:, 7].tolist(), units[:, 8].tolist(),
                  {slot: space.column[<Py_ssize_t> slot] for slot in np.flatnonzero(units[:, 12]).tolist()})


cdef class Units(Model):
    """Blocks of a forest's features, and the deadlines by which the vanished ones are found.

    While it learns, whatever needs memory that is not there is left out, and the space is told so.
    """

    def __dealloc__(self):
        cdef Py_ssize_t u
        for u in range(self.capacity):
            self.clear(<int32_t> u)
        free(self.unit)
        free(self.mass)
        free(self.heap.item)
        free(self.heap.place)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if capacity <= self.capacity:
            return 0
        cdef Unit* unit = <Unit*> realloc(self.unit, capacity * sizeof(Unit))
        if unit != NULL:
            self.unit = unit
            self.heap.key = &unit[0].deadline
        cdef int32_t* item = <int32_t*> realloc(self.heap.item, capacity * sizeof(int32_t))
        if item != NULL:
            self.heap.item = item
        cdef int32_t* place = <int32_t*> realloc(self.heap.place, capacity * sizeof(int32_t))
        if place != NULL:
            self.heap.place = place
        if unit == NULL or item == NULL or place == NULL:
            raise MemoryError
        memset(self.unit + self.capacity, 0, (capacity - self.capacity) * sizeof(Unit))
        memset(self.heap.place + self.capacity, 0, (capacity - self.capacity) * sizeof(int32_t))
        self.heap.stride = sizeof(Unit) // sizeof(double)
        self.heap.capacity = capacity
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        if self.classes == self.wide:
            self.widen(2 * self.wide if self.wide else 2)
        self.classes += 1
        return 0

    cdef int widen(self, int wide) except -1:
        """Room for this many classes, what is held laid out anew; all or nothing."""
        cdef int old = self.wide, J = self.stumps
        cdef Py_ssize_t u, k
        cdef bint fits
        cdef Unit* unit
        cdef double* mass = <double*> realloc(self.mass, wide * sizeof(double))
        if mass == NULL:
            raise MemoryError
        self.mass = mass
        memset(mass + old, 0, (wide - old) * sizeof(double))
        cdef void** new = <void**> claim(3 * self.capacity + 1, sizeof(void*))
        for u in range(self.capacity):
            unit = &self.unit[u]
            fits = True
            if unit.digest != NULL:
                new[3 * u] = calloc(wide, sizeof(Digest))
                fits = new[3 * u] != NULL
            if unit.forest != NULL:
                new[3 * u + 1] = relaid(unit.forest, 2 * J, 2 * J, J + 1, old, wide)
                fits = fits and new[3 * u + 1] != NULL
            if unit.level != NULL:
                new[3 * u + 2] = relaid(unit.level, old, wide, 1, old, wide)
                fits = fits and new[3 * u + 2] != NULL
            if not fits:
                for k in range(3 * u + 3):
                    free(new[k])
                free(new)
                raise MemoryError
        for u in range(self.capacity):
            unit = &self.unit[u]
            if unit.digest != NULL:
                memcpy(new[3 * u], unit.digest, old * sizeof(Digest))
            free(unit.digest)
            free(unit.forest)
            free(unit.level)
            unit.digest = <Digest*> new[3 * u]
            unit.forest = <double*> new[3 * u + 1]
            unit.level = <double*> new[3 * u + 2]
        free(new)
        self.wide = wide
        return 0

    # ---------------------------------------------------------------- coming and going

    cdef void* grab(self, Py_ssize_t count, Py_ssize_t size) noexcept nogil:
        """Zeroed memory, NULL when there is none."""
        cdef void* got = calloc(count, size)
        if got == NULL:
            self.space.starved = True
        return got

    cdef bint see(self, int32_t u, int64_t t) noexcept nogil:
        """The unit is there in round t; its deadline moves forward if it may now vanish sooner. False: no memory."""
        cdef Unit* unit = &self.unit[u]
        cdef Presence* p = &unit.presence
        cdef int64_t sooner
        if p.count == 0:
            unit.weight = 1.0
            p.ring = <uint64_t*> self.grab(self.rule.words, sizeof(uint64_t))
            if p.ring == NULL:
                return False
        elif p.last == t:
            return True
        presence_mark(p, &self.rule, t)
        if self.rule.by_bound or self.rule.by_gap:
            sooner = soonest(p, &self.rule, t)
            if self.heap.place[u] == 0 or unit.deadline > sooner:
                unit.deadline = <double> sooner
                heap_touch(&self.heap, u)
        return True

    cdef void prune(self, int64_t t) noexcept nogil:
        """Look at the units that are due, and give up those that have vanished."""
        cdef int32_t u
        cdef int64_t due
        cdef Presence* p
        while self.heap.n and heap_key(&self.heap, self.heap.item[0]) <= t:
            u = self.heap.item[0]
            p = &self.unit[u].presence
            due = soonest(p, &self.rule, t) if p.last >= t else vanishes(p, &self.rule, t)
            if due == t:
                self.vanish(u)
            elif due < 0:
                heap_drop(&self.heap, u)
            else:
                self.unit[u].deadline = <double> due
                heap_touch(&self.heap, u)

    cdef void vanish(self, int32_t u) noexcept nogil:
        """Give up a unit, its name and those of its levels."""
        cdef int32_t s = self.unit[u].first_level
        if self.space.kind[u] & NUMERIC:
            self.mark_evicted(u)
        while s:
            self.mark_evicted(s)
            s = self.unit[s].next_level
        self.clear(u)
        self.pruned += 1

    cdef void clear(self, int32_t u) noexcept nogil:
        """Back to nothing, a column's levels with it."""
        cdef Unit* unit = &self.unit[u]
        cdef int32_t s = unit.first_level, following
        heap_drop(&self.heap, u)
        while s:
            following = self.unit[s].next_level
            free(self.unit[s].level)
            self.unit[s].level = NULL
            self.unit[s].next_level = 0
            s = following
        self.clear_numbers(unit)
        free(unit.level)
        free(unit.presence.ring)
        memset(unit, 0, sizeof(Unit))

    cdef void clear_numbers(self, Unit* unit) noexcept nogil:
        cdef int c
        if unit.digest != NULL:
            for c in range(self.wide):
                digest_clear(&unit.digest[c])
        free(unit.digest)
        free(unit.forest)
        unit.digest = NULL
        unit.forest = NULL
        unit.numbers = 0
        unit.refreshed = 0

    cdef bint link(self, int32_t s, int32_t u) noexcept nogil:
        """A block for level s of column u. False: no memory."""
        self.unit[s].level = <double*> self.grab(2 * self.wide + 1, sizeof(double))
        if self.unit[s].level == NULL:
            return False
        self.unit[s].next_level = self.unit[u].first_level
        self.unit[u].first_level = s
        return True

    cdef void unlink(self, int32_t s) noexcept nogil:
        cdef int32_t u = self.space.column[s]
        cdef int32_t* place = &self.unit[u].first_level
        while place[0] != s:
            place = &self.unit[place[0]].next_level
        place[0] = self.unit[s].next_level
        self.unit[s].next_level = 0
        free(self.unit[s].level)
        self.unit[s].level = NULL

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int32_t u
        if self.space.kind[slot] & INDICATOR:
            u = self.space.column[slot]
            if self.unit[slot].level != NULL:
                self.unlink(slot)
            if self.unit[u].first_level == 0 and not self.space.kind[u] & NUMERIC:
                self.clear(u)
        elif self.unit[slot].first_level:
            self.clear_numbers(&self.unit[slot])
        else:
            self.clear(slot)

    # ---------------------------------------------------------------- keeping

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t u, k
        cdef int c, J = self.stumps, wide = self.wide
        cdef Unit* unit
        cdef Digest* d
        table = np.zeros((size, 13), dtype=np.int64)
        real = np.zeros((size, 4))
        rings, forests, levels, digests, points = [], [], [], [], []
        cdef int64_t[:, ::1] ints = table
        cdef double[:, ::1] reals = real
        for u in range(size):
            unit = &self.unit[u]
            for k, value in enumerate((
                    unit.presence.first, unit.presence.last, unit.presence.count, unit.refreshed, unit.serial,
                    unit.numbers, unit.texts, unit.first_level, unit.next_level, self.heap.place[u] > 0,
                    unit.digest != NULL, unit.forest != NULL, unit.level != NULL)):
                ints[u, k] = value
            reals[u, 0] = unit.deadline
            reals[u, 1] = unit.weight
            reals[u, 2] = unit.told
            reals[u, 3] = unit.heard
            if unit.presence.count:
                rings.append([unit.presence.ring[k] for k in range(self.rule.words)])
            if unit.forest != NULL:
                forests.append(copied(unit.forest, 2 * J + (J + 1) * (1 + wide)))
            if unit.level != NULL:
                levels.append(copied(unit.level, 2 * wide + 1))
            if unit.digest != NULL:
                for c in range(wide):
                    d = &unit.digest[c]
                    digests.append((d.total, d.lo, d.hi, <double> d.n, <double> d.held))
                    points.append(copied(<double*> d.point, 2 * (d.n + d.held)))
        arrays = Model.dump(self, size)
        arrays.update({
            "units": table, "weights": real,
            "rings": np.array(rings, dtype=np.uint64).reshape(-1, self.rule.words),
            "forests": np.array(forests).reshape(-1, 2 * J + (J + 1) * (1 + wide)),
            "levels": np.array(levels).reshape(-1, 2 * wide + 1),
            "digests": np.array(digests).reshape(-1, 5),
            "points": np.concatenate(points) if points else np.zeros(0),
            "mass": copied(self.mass, wide),
            "sums": np.array([self.total, self.temper, self.certainty, <double> self.pruned]),
        })
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t u, k, size
        cdef int c, J = self.stumps, wide
        cdef Unit* unit
        cdef Digest* d
        check_units(arrays, capacity, J, self.rule.words, self.space)
        cdef int64_t[:, ::1] ints = np.ascontiguousarray(arrays["units"], dtype=np.int64)
        cdef double[:, ::1] reals = np.ascontiguousarray(arrays["weights"], dtype=np.float64)
        rings, forests, levels = iter(arrays["rings"]), iter(arrays["forests"]), iter(arrays["levels"])
        digests, points = iter(arrays["digests"]), arrays["points"]
        Model.fill(self, arrays, capacity)
        size = ints.shape[0]
        wide = arrays["mass"].shape[0]
        if wide < self.classes:
            raise ValueError(f"room for {wide} classes where there are {self.classes}")
        self.grow(capacity)
        if wide > self.wide:
            self.widen(wide)
        for c in range(wide):
            self.mass[c] = arrays["mass"][c]
        self.total, self.temper, self.certainty, pruned = arrays["sums"].tolist()
        self.pruned = int(pruned)
        for u in range(size):
            unit = &self.unit[u]
            unit.presence.first = ints[u, 0]
            unit.presence.last = ints[u, 1]
            unit.presence.count = ints[u, 2]
            unit.refreshed = ints[u, 3]
            unit.serial = ints[u, 4]
            unit.numbers = ints[u, 5]
            unit.texts = ints[u, 6]
            unit.first_level = <int32_t> ints[u, 7]
            unit.next_level = <int32_t> ints[u, 8]
            unit.deadline = reals[u, 0]
            unit.weight = reals[u, 1]
            unit.told = reals[u, 2]
            unit.heard = reals[u, 3]
            if unit.presence.count:
                unit.presence.ring = <uint64_t*> claim(self.rule.words, sizeof(uint64_t))
                for k, word in enumerate(next(rings).tolist()):
                    unit.presence.ring[k] = word
            if ints[u, 11]:
                unit.forest = taken(next(forests))
            if ints[u, 12]:
                unit.level = taken(next(levels))
            if ints[u, 10]:
                unit.digest = <Digest*> claim(wide, sizeof(Digest))
                for c in range(wide):
                    d = &unit.digest[c]
                    d.total, d.lo, d.hi, n, held = next(digests).tolist()
                    k = int(n + held)
                    if not digest_reserve(d, k):
                        raise MemoryError
                    d.n = int(n)
                    d.held = int(held)
                    put(<double*> d.point, points[:2 * k])
                    points = points[2 * k:]
            if ints[u, 9]:
                heap_touch(&self.heap, <int32_t> u)

    def nbytes(self):
        cdef Py_ssize_t u, total = self.capacity * (sizeof(Unit) + 2 * sizeof(int32_t))
        cdef int c, J = self.stumps
        for u in range(self.capacity):
            if self.unit[u].presence.count:
                total += self.rule.words * sizeof(uint64_t)
            if self.unit[u].forest != NULL:
                total += (2 * J + (J + 1) * (1 + self.wide)) * sizeof(double)
            if self.unit[u].level != NULL:
                total += (2 * self.wide + 1) * sizeof(double)
            if self.unit[u].digest != NULL:
                for c in range(self.wide):
                    total += sizeof(Digest) + 2 * sizeof(double) * self.unit[u].digest[c].room
        return total


cdef object copied(double* numbers, Py_ssize_t n):
    out = np.zeros(n)
    cdef double[::1] view = out
    if n:
        memcpy(&view[0], numbers, n * sizeof(double))
    return out


cdef void put(double* place, object numbers):
    cdef const double[::1] view = np.ascontiguousarray(numbers, dtype=np.float64)
    if view.shape[0]:
        memcpy(place, &view[0], view.shape[0] * sizeof(double))


cdef double* taken(object numbers) except NULL:
    cdef double* block = <double*> claim(len(numbers), sizeof(double))
    put(block, numbers)
    return block
