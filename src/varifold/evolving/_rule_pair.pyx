"""Two rules of one kind, one of which may see old features through a map.

Each rule numbers the slots it uses, so that its state is no larger than its own feature space, and gets a view in these
local slots. The view of the old rule has present values unchanged and absent values as recovered by the map.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from varifold._engine.models.model cimport Model
from varifold._engine.models.one_vs_rest cimport at, score_one
from varifold._engine.order cimport MARKED_WORDS, sort_pairs
from varifold._engine.names.space cimport Space
from varifold._engine.view cimport View
from varifold._numeric.activation cimport log_loss

from varifold._engine.state import checked_array, fixed, per_slot

cdef double PER_BIT = 1.4426950408889634   # 1 / ln 2


cdef class RulePair(Model):
    """Pair of rules and a map, all set by the subclass's constructor; rules allocate only in grow() and per class."""

    def __cinit__(self):
        cdef int e
        self.first_space = Space()
        self.second_space = Space()
        self.arrays.scratch(&self.slots, per_slot(width=2))
        self.arrays.scratch(&self.slots2, per_slot(width=2))
        self.arrays.scratch(&self.values, per_slot(width=2))
        self.arrays.scratch(&self.values2, per_slot(width=2))
        self.arrays.scratch(&self.where, per_slot())
        self.arrays.scratch(&self.recovered, per_slot())
        self.arrays.scratch(&self.never_new, per_slot(width=2))
        self.arrays.scratch(<int64_t**> &self.marks, fixed(MARKED_WORDS))
        for e in range(2):
            self.arrays.scratch(&self.local[e].of, per_slot(first=-1))
            self.arrays.scratch(&self.local[e].slot, per_slot())
            self.arrays.scratch(&self.local[e].spare, per_slot())
        self.arrays.reserve_slots(1)
        for e in range(2):
            self.local[e].n = 1
            self.local[e].of[0] = 0

    cdef int attach(self, Space space) except -1:
        self.first.attach(self.first_space)
        self.second.attach(self.second_space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        if capacity <= self.capacity:
            return 0
        self.first_space.grow(capacity)
        self.second_space.grow(capacity)
        self.first.grow(capacity)
        self.second.grow(capacity)
        return Model.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        self.first.reserve_class()
        self.second.reserve_class()
        return Model.reserve_class(self)

    cdef int add_class(self) except -1:
        self.first.add_class()
        self.second.add_class()
        return Model.add_class(self)

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int e
        cdef int32_t i
        for e in range(2):
            i = self.local[e].of[slot]
            if i < 0:
                continue
            if e == 0:
                self.first.forget(i)
            else:
                self.second.forget(i)
            self.local[e].of[slot] = -1
            self.local[e].slot[i] = -1
            self.local[e].spare[self.local[e].spares] = i
            self.local[e].spares += 1
        self.map.forget(slot)

    # ---------------------------------------------------------------- one of the two rules

    cdef double rule_score(self, int e, int c) noexcept nogil:
        """Return a rule's score of the current view."""
        return score_one(self.first, &self.inner, c) if e == 0 else score_one(self.second, &self.inner, c)

    cdef void rule_learn(self, int e, int y, double w) noexcept nogil:
        """Update a rule with the current view."""
        if e == 0:
            self.first.learn(&self.inner, y, w)
        else:
            self.second.learn(&self.inner, y, w)

    cdef double rule_coefficient(self, int e, int32_t slot, int c) noexcept nogil:
        """Return a rule's weight of a slot, 0 if it does not use the slot."""
        cdef int32_t i = self.local[e].of[slot]
        if i < 0:
            return 0.0
        return self.first.coefficient(i, c) if e == 0 else self.second.coefficient(i, c)

    cdef double rule_loss(self, int e, int y) noexcept nogil:
        """Return the loss of a rule on the current view, averaged over its problems."""
        cdef int c, k = self.first.problems
        cdef double total = 0.0, m
        for c in range(k):
            m = self.rule_score(e, c)
            if y != (1 if k == 1 else c):
                m = -m
            if self.logistic:
                total += PER_BIT * log_loss(m)
            else:
                total += 1.0 - m if m < 1.0 else 0.0
        return min(total / k, 1e100)

    cdef void restart(self, int e) noexcept nogil:
        """Reset a rule's per-problem state (such as the round of a decaying rate)."""
        cdef int c
        if e == 0:
            memset(self.first.shared, 0, self.first.problems * self.first.globals * sizeof(double))
            for c in range(self.first.problems):
                self.first.start(c)
        else:
            memset(self.second.shared, 0, self.second.problems * self.second.globals * sizeof(double))
            for c in range(self.second.problems):
                self.second.start(c)

    cdef void wipe(self, int e) noexcept nogil:
        """Reset a rule to its initial state."""
        cdef Locals* l = &self.local[e]
        cdef int32_t i
        for i in range(l.n):
            if e == 0:
                self.first.forget(i)
            else:
                self.second.forget(i)
            if i and l.slot[i] >= 0:
                l.of[l.slot[i]] = -1
        l.n = 1
        l.spares = 0
        l.sealed = False
        if e == 0:
            self.first_space.size = 1
        else:
            self.second_space.size = 1
        self.restart(e)

    cdef int32_t local_slot(self, int e, int32_t slot) noexcept nogil:
        """Return a rule's local index of a slot; assign one if there is none."""
        cdef Locals* l = &self.local[e]
        cdef int32_t i = l.of[slot]
        if i >= 0:
            return i
        if l.spares:
            l.spares -= 1
            i = l.spare[l.spares]
        else:
            i = l.n
            l.n += 1
            if e == 0:
                self.first_space.size = l.n
            else:
                self.second_space.size = l.n
        l.of[slot] = i
        l.slot[i] = slot
        return i

    cdef void set_weight(self, int e, int32_t slot, int c, double f) noexcept nogil:
        """Set a rule's weight of a slot."""
        cdef int32_t i = self.local_slot(e, slot)
        if e == 0:
            at(self.first, i, c)[0] = f
        else:
            at(self.second, i, c)[0] = f

    # ---------------------------------------------------------------- views

    cdef void mark(self, View* v, bint present) noexcept nogil:
        """Write each slot's position in the view to `where`, or clear it."""
        cdef Py_ssize_t i
        for i in range(v.n):
            self.where[v.slot[i]] = <int32_t> (i + 1) if present else 0

    cdef inline double clipped(self, double x) noexcept nogil:
        """Clip a recovered value to `bound`."""
        return min(max(x, -self.bound), self.bound)

    cdef void recover(self, View* v) noexcept nogil:
        """Compute old features from new ones, base + M (x_new - mean), before clipping; call mark() first."""
        cdef Py_ssize_t i, j, q = self.map.outputs
        cdef int32_t s
        cdef double d
        cdef double* row
        cdef double* out = self.recovered
        for j in range(q):
            out[j] = self.map.base[j]
        for i in range(self.map.inputs):
            s = self.map.input[i]
            if s < 0 or self.where[s] == 0:
                continue
            d = v.raw[self.where[s] - 1] - self.map.mean[i]
            row = self.map.matrix + i * q
            for j in range(q):
                out[j] += d * row[j]

    cdef void lay_out(self, int e, View* v) noexcept nogil:
        """Write the instance as a rule sees it to `inner`; for the old rule absent values are recovered."""
        cdef Locals* l = &self.local[e]
        cdef Py_ssize_t i, n = 0
        cdef int32_t s
        for i in range(v.n):
            s = l.of[v.slot[i]]
            if s >= 0:
                self.slots[n] = s
                self.values[n] = v.x[i]
                n += 1
        if e == self.old and self.map.outputs:
            self.mark(v, True)
            self.recover(v)
            for i in range(self.map.outputs):
                s = self.map.output[i]
                if s >= 0 and self.where[s] == 0 and l.of[s] >= 0:
                    self.slots[n] = l.of[s]
                    self.values[n] = self.clipped(self.recovered[i])
                    n += 1
            self.mark(v, False)
        sort_pairs(n, self.slots, self.values, self.slots2, self.values2, self.marks, l.n)
        self.inner.n = n
        self.inner.slot = self.slots
        self.inner.x = self.values
        self.inner.raw = self.values
        self.inner.is_new = self.never_new
        self.inner.columns = 0
        self.inner.column = NULL
        self.inner.step = v.step
        self.inner.known = l.n - 1

    # ---------------------------------------------------------------- looking inside

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.first.proba(scores, out)

    cdef void explain_part(self, int e, View* v, int c, double sign, double* out) noexcept nogil:
        """Add each entry's contribution to a rule's score; those of recovered features go to the inputs of the map."""
        cdef Py_ssize_t i, j, q = self.map.outputs
        cdef int32_t s
        cdef double f
        for i in range(v.n):
            out[i] += sign * self.rule_coefficient(e, v.slot[i], c) * v.x[i]
        if e != self.old or q == 0:
            return
        self.mark(v, True)
        self.recover(v)
        for j in range(q):
            s = self.map.output[j]
            if s < 0 or self.where[s]:
                continue
            f = sign * self.rule_coefficient(e, s, c)
            if self.recovered[j] != 0.0:
                f *= self.clipped(self.recovered[j]) / self.recovered[j]
            if self.where[0]:
                out[self.where[0] - 1] += f * self.map.base[j]
            for i in range(self.map.inputs):
                s = self.map.input[i]
                if s >= 0 and self.where[s]:
                    out[self.where[s] - 1] += f * self.map.matrix[i * q + j] * (
                        v.raw[self.where[s] - 1] - self.map.mean[i])
        self.mark(v, False)

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Sum the absolute weights over the running models; an input of the map includes those of its old features."""
        cdef double total = 0.0
        cdef Py_ssize_t i, j, q = self.map.outputs
        cdef int c
        for c in range(self.first.problems):
            total += fabs(self.rule_coefficient(self.old, slot, c))
            if self.two:
                total += fabs(self.rule_coefficient(1 - self.old, slot, c))
            for i in range(self.map.inputs):
                if self.map.input[i] != slot:
                    continue
                for j in range(q):
                    if self.map.output[j] >= 0:
                        total += fabs(self.map.matrix[i * q + j]
                                      * self.rule_coefficient(self.old, self.map.output[j], c))
        return total

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i
        cdef Locals* l
        arrays = {**Model.dump(self, size), **self.map.dump()}
        for e, rule in enumerate((self.first, self.second)):
            l = &self.local[e]
            for key, array in rule.dump(l.n).items():
                arrays[f"rule{e}.{key}"] = array
            arrays[f"rule{e}.slots"] = np.array([l.slot[i] for i in range(l.n)], dtype=np.int32)
            arrays[f"rule{e}.spare"] = np.array([l.spare[i] for i in range(l.spares)], dtype=np.int32)
        arrays["pair"] = np.array([self.old, self.two, self.local[0].sealed, self.local[1].sealed], dtype=np.int64)
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i
        cdef Locals* l
        Model.fill(self, arrays, capacity)
        self.map.fill(arrays, capacity)
        pair = checked_array(arrays, "pair", "i", (4,), 0, 1)
        for e, rule in enumerate((self.first, self.second)):
            l = &self.local[e]
            prefix = f"rule{e}."
            rule.fill({key[6:]: a for key, a in arrays.items() if key.startswith(prefix)}, capacity)
            slots = checked_array(arrays, prefix + "slots", "i", (None,), -1, capacity - 1)
            spare = checked_array(arrays, prefix + "spare", "i", (None,), 1, len(slots) - 1)
            used = slots[slots >= 0]
            if (not 0 < len(slots) <= capacity or slots[0] != 0 or len(np.unique(used)) != len(used)
                    or len(spare) != len(slots) - len(used)):
                raise ValueError(f"the features of {prefix[:5]} do not belong to this model")
            l.n = len(slots)
            for i in range(l.n):
                l.slot[i] = slots[i]
                if slots[i] >= 0:
                    l.of[<int> slots[i]] = <int32_t> i
            l.spares = len(spare)
            for i in range(l.spares):
                l.spare[i] = spare[i]
            l.sealed = bool(pair[2 + e])
        self.first_space.size = self.local[0].n
        self.second_space.size = self.local[1].n
        self.old = int(pair[0])
        self.two = bool(pair[1])

    def nbytes(self):
        return self.arrays.nbytes() + self.first.nbytes() + self.second.nbytes() + self.map.nbytes()
