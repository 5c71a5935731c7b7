"""Two models around a switch of the feature space: the old one on recovered features, a new one, and their mixture.

Before any switch one rule runs. During an overlap it keeps to the old features while the map new -> old is gathered.
At the switch it becomes the old model, which sees what is still there as it is and the rest through the map; the other
rule starts afresh on what is seen. At the next switch the one that did better of late is carried over. The
rules are any two BinaryRules of a kind whose first number a slot is a weight.
"""

import numpy as np

from libc.math cimport exp, fabs, log1p
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from varifold._core.experts cimport (
    ANYTIME, HORIZON, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_weights,
)
from varifold._core.feature_map cimport FeatureMap, Overlap
from varifold._core.model cimport BinaryRule, Model, at
from varifold._core.order cimport BITMAP_SLOTS, sort_pairs
from varifold._core.phases cimport ABSORB, GONE, JOIN, JOINED, Phases, SWITCH
from varifold._core.space cimport Space, seen_first
from varifold._core.view cimport View

PARTS = {"new": NEW, "frozen": FROZEN, "updated": UPDATED, "mean": MEAN, "drawn": DRAWN, "heavier": HEAVIER}
cdef double RECENT = 1.0 / 32.0            # share of the last loss in the running mean that chooses who is carried over
cdef double PER_BIT = 1.4426950408889634   # 1 / ln 2


cdef inline double uniform(uint64_t seed, uint64_t step) noexcept nogil:
    """A number in [0, 1) that depends on seed and step alone (splitmix64)."""
    cdef uint64_t z = seed * <uint64_t> 0xD1342543DE82EF95 + (step + 1) * <uint64_t> 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return ((z ^ (z >> 31)) >> 11) * (1.0 / 9007199254740992.0)


cdef class EvolvingModel(Model):
    def __cinit__(self, BinaryRule first not None, BinaryRule second not None, str parts, *, Phases phases not None,
                  bint logistic=False, bint transfer=False, bint centred=False, bint spread=False, double ridge=0.0,
                  double bound=0.0, horizon=None, Py_ssize_t max_dense=512, seed=0):
        self.first = first
        self.second = second
        self.first_space = Space()
        self.second_space = Space()
        self.phases = phases
        self.parts = PARTS[parts]
        self.logistic = logistic
        self.transfer = transfer
        self.centred = centred
        self.bound = bound
        self.seed = seed
        self.map = FeatureMap(ridge, spread)
        self.overlap = Overlap(max_dense)
        self.wants_columns = True
        self.dense = <double*> calloc(BITMAP_SLOTS, sizeof(double))
        if self.dense == NULL or experts_make(&self.experts, 2, ANYTIME if horizon is None else HORIZON,
                        0.0 if horizon is None else horizon, 0.0 if self.parts == MEAN else -1.0) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef int e
        experts_free(&self.experts)
        for e in range(2):
            free(self.local[e].of)
            free(self.local[e].slot)
            free(self.local[e].spare)
        free(self.slots)
        free(self.slots2)
        free(self.values)
        free(self.values2)
        free(self.where)
        free(self.column_of)
        free(self.recovered)
        free(self.unfresh)
        free(self.dense)

    # ---------------------------------------------------------------- growing

    cdef int attach(self, Space space) except -1:
        self.first.attach(self.first_space)
        self.second.attach(self.second_space)
        Model.attach(self, space)
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t old = self.capacity, room = capacity - self.capacity
        if room <= 0:
            return 0
        self.grow_rule(0, capacity)
        self.grow_rule(1, capacity)
        self.phases.grow(self.space, capacity)
        self.slots = <int32_t*> realloc(self.slots, 2 * capacity * sizeof(int32_t))
        self.slots2 = <int32_t*> realloc(self.slots2, 2 * capacity * sizeof(int32_t))
        self.values = <double*> realloc(self.values, 2 * capacity * sizeof(double))
        self.values2 = <double*> realloc(self.values2, 2 * capacity * sizeof(double))
        self.where = <int32_t*> realloc(self.where, capacity * sizeof(int32_t))
        self.column_of = <int32_t*> realloc(self.column_of, capacity * sizeof(int32_t))
        self.recovered = <double*> realloc(self.recovered, capacity * sizeof(double))
        self.unfresh = <uint8_t*> realloc(self.unfresh, 2 * capacity)
        if (self.slots == NULL or self.slots2 == NULL or self.values == NULL or self.values2 == NULL
                or self.where == NULL or self.column_of == NULL or self.recovered == NULL
                or self.unfresh == NULL):
            raise MemoryError
        memset(self.unfresh, 0, 2 * capacity)
        memset(self.where + old, 0, room * sizeof(int32_t))
        memset(self.column_of + old, 0, room * sizeof(int32_t))
        self.capacity = capacity
        return 0

    cdef int grow_rule(self, int e, Py_ssize_t capacity) except -1:
        cdef Locals* l = &self.local[e]
        cdef BinaryRule rule = self.first if e == 0 else self.second
        cdef Space space = self.first_space if e == 0 else self.second_space
        cdef Py_ssize_t i
        space.grow(capacity)
        rule.grow(capacity)
        l.of = <int32_t*> realloc(l.of, capacity * sizeof(int32_t))
        l.slot = <int32_t*> realloc(l.slot, capacity * sizeof(int32_t))
        l.spare = <int32_t*> realloc(l.spare, capacity * sizeof(int32_t))
        if l.of == NULL or l.slot == NULL or l.spare == NULL:
            raise MemoryError
        for i in range(self.capacity, capacity):
            l.of[i] = -1
        if l.n == 0:
            l.n = 1
            l.of[0] = 0
            l.slot[0] = 0
        return 0

    cdef int add_class(self) except -1:
        self.first.add_class()
        self.second.add_class()
        self.classes += 1
        return 0

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
        self.overlap.forget(slot)
        self.phases.forget(slot)
        self.column_of[slot] = 0

    # ---------------------------------------------------------------- one of the two rules

    cdef double rule_score(self, int e, int c) noexcept nogil:
        return self.first.score(&self.inner, c) if e == 0 else self.second.score(&self.inner, c)

    cdef void rule_learn(self, int e, int y, double w) noexcept nogil:
        if e == 0:
            self.first.learn(&self.inner, y, w)
        else:
            self.second.learn(&self.inner, y, w)

    cdef double rule_coefficient(self, int e, int32_t slot, int c) noexcept nogil:
        """The weight a rule gives to a slot, 0 where it has none."""
        cdef int32_t i = self.local[e].of[slot]
        if i < 0:
            return 0.0
        return self.first.coefficient(i, c) if e == 0 else self.second.coefficient(i, c)

    cdef double rule_loss(self, int e, int y) noexcept nogil:
        """Loss of a rule on the view laid out, the mean over its problems."""
        cdef int c, k = self.first.problems
        cdef double total = 0.0, m
        for c in range(k):
            m = self.rule_score(e, c)
            if y != (1 if k == 1 else c):
                m = -m
            if not self.logistic:
                total += 1.0 - m if m < 1.0 else 0.0
            elif m > 0.0:
                total += PER_BIT * log1p(exp(-m))
            else:
                total += PER_BIT * (log1p(exp(m)) - m)
        return total / k

    cdef void restart(self, int e) noexcept nogil:
        """A rule's shared numbers (the round of a falling rate) begin anew."""
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
        """A rule as it was when made."""
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

    cdef int32_t take(self, int e, int32_t slot) noexcept nogil:
        """A rule's number for a slot, new or known."""
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

    cdef void admit(self, int e, View* v) noexcept nogil:
        """Let a rule that still grows take the instance's features, but for those that joined just now."""
        cdef Py_ssize_t i
        cdef int32_t s
        if self.local[e].sealed:
            return
        for i in range(v.n):
            s = v.slot[i]
            if self.local[e].of[s] < 0 and self.phases.group[self.space.column[s]] != JOINED:
                self.take(e, s)

    # ---------------------------------------------------------------- views

    cdef void mark(self, View* v, bint present) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(v.n):
            self.where[v.slot[i]] = <int32_t> (i + 1) if present else 0

    cdef inline double clipped(self, double x) noexcept nogil:
        if self.bound > 0.0:
            if x > self.bound:
                return self.bound
            if x < -self.bound:
                return -self.bound
        return x

    cdef void recover(self, View* v) noexcept nogil:
        """Old features from the new ones, before clipping; the view is marked."""
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

    cdef void lay(self, int e, View* v) noexcept nogil:
        """The instance as a rule sees it, into `inner`: its own numbers, what is absent recovered if it is old."""
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
        sort_pairs(n, self.slots, self.values, self.slots2, self.values2, self.dense, l.n)
        self.inner.n = n
        self.inner.slot = self.slots
        self.inner.x = self.values
        self.inner.raw = self.values
        self.inner.fresh = self.unfresh
        self.inner.columns = 0
        self.inner.column = NULL
        self.inner.step = v.step
        self.inner.known = l.n - 1

    # ---------------------------------------------------------------- answering

    cdef void weights(self, View* v, double* a) noexcept nogil:
        """What the old (0) and the new model (1) count for in this instance's answer."""
        cdef bint old
        a[0] = 1.0
        a[1] = 0.0
        if not self.two:
            return
        experts_weights(&self.experts, a)
        if self.parts != MEAN:
            old = uniform(self.seed, v.step) < a[0] if self.parts == DRAWN else a[0] >= a[1]
            a[0] = 1.0 if old else 0.0
            a[1] = 0.0 if old else 1.0

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c, k, part, problems = self.first.problems
        cdef double a[2]
        cdef double f
        for c in range(self.classes):
            out[c] = 0.0
        if self.classes < 2:
            return
        self.weights(v, a)
        for part in range(2):
            if a[part] == 0.0:
                continue
            k = self.old if part == 0 else 1 - self.old
            self.lay(k, v)
            for c in range(problems):
                f = a[part] * self.rule_score(k, c)
                if problems == 1:
                    out[1] += f
                else:
                    out[c] += f
        if problems == 1:
            out[0] = -out[1]

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        self.first.proba(scores, out)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int event = self.phases.observe(v), growing
        cdef double losses[2]
        if event == JOIN:
            self.begin()
        elif event == ABSORB:
            self.phases.absorb()
            self.overlap.clear()
        elif event == SWITCH:
            self.switch(v)
        growing = 1 - self.old if self.two else self.old
        self.admit(growing, v)
        if self.phases.pairs:
            self.collect(v, w)
        self.lay(self.old, v)
        if self.two:
            losses[0] = self.rule_loss(self.old, y)
        if not self.frozen:
            self.rule_learn(self.old, y, w)
        if self.two:
            self.lay(growing, v)
            losses[1] = self.rule_loss(growing, y)
            self.rule_learn(growing, y, w)
            experts_learn(&self.experts, losses, w)
            self.recent[0] += RECENT * (losses[0] - self.recent[0])
            self.recent[1] += RECENT * (losses[1] - self.recent[1])
        if self.phases.due(v.step + 1):
            self.switch(NULL)

    cdef void begin(self) noexcept nogil:
        """An overlap begins: choose whose features are mapped to."""
        cdef Py_ssize_t i
        self.heir = 1 - self.old if self.two and self.recent[1] <= self.recent[0] else self.old
        self.overlap.clear()
        for i in range(self.capacity):
            self.column_of[i] = 0
        if self.centred:
            self.overlap.add_input(0, 1.0)

    cdef void collect(self, View* v, double w) noexcept nogil:
        """A row of the overlap: joined features as given, the heir's as it sees them."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef Locals* l = &self.local[self.heir]
        for i in range(v.n):
            s = v.slot[i]
            if s and self.column_of[s] == 0 and self.phases.group[self.space.column[s]] == JOINED:
                self.column_of[s] = self.overlap.add_input(s, v.raw[i]) + 1
        while not self.overlap.full and self.overlap.outputs < l.n - 1:
            self.overlap.add_output(l.slot[self.overlap.outputs + 1])
        if self.overlap.full:
            return
        self.overlap.blank()
        if self.centred:
            self.overlap.row_a[0] = 1.0
        for i in range(v.n):
            s = v.slot[i]
            if self.column_of[s]:
                self.overlap.row_a[self.column_of[s] - 1] = v.raw[i]
        self.lay(self.heir, v)
        for i in range(self.inner.n):
            if self.inner.slot[i]:
                self.overlap.row_y[self.inner.slot[i] - 1] = self.inner.x[i]
        self.overlap.take(w)

    cdef bint stays(self, View* v) noexcept nogil:
        """Whether the instance still shows a feature of the heir's."""
        cdef Py_ssize_t i
        if v != NULL:
            for i in range(v.n):
                if v.slot[i] and self.local[self.heir].of[v.slot[i]] > 0:
                    return True
        return False

    cdef void switch(self, View* v) noexcept nogil:
        """The old features have gone (v: the first instance without them; NULL before it)."""
        cdef bint mapped
        if not self.phases.overlapping:
            self.begin()
        mapped = self.map.solve(self.overlap)
        self.maps_missed += self.overlap.full
        self.old = self.heir
        if self.parts == NEW or not (mapped or self.stays(v)):
            self.wipe(1 - self.heir)
            if self.transfer and mapped:
                self.hand_over(self.heir, 1 - self.heir, v)
            self.old = 1 - self.heir
            self.two = False
            self.map.clear()
        elif self.parts == FROZEN or self.parts == UPDATED:
            self.local[self.old].sealed = True
            self.frozen = self.parts == FROZEN
        else:
            self.wipe(1 - self.heir)
            if self.transfer and mapped:
                self.hand_over(self.heir, 1 - self.heir, v)
            self.local[self.old].sealed = True
            self.two = True
            self.recent[0] = self.recent[1] = 1.0
            self.experts.rounds = 0.0
            self.experts.held[0] = 0.0
            self.experts.held[1] = 0.0
        self.restart(self.heir)
        self.phases.turn(v)
        self.overlap.clear()

    cdef void hand_over(self, int giver, int taker, View* v) noexcept nogil:
        """Weights of the new model such that it answers as the old one does through the map."""
        cdef Py_ssize_t i, j, q = self.map.outputs
        cdef int c
        cdef int32_t s, t
        cdef double f
        if v != NULL:
            self.mark(v, True)
        for c in range(self.first.problems):
            for i in range(-1, self.map.inputs):
                s = 0 if i < 0 else self.map.input[i]
                if s < 0:
                    continue
                f = self.rule_coefficient(giver, 0, c) if i < 0 else 0.0
                for j in range(q):
                    t = self.map.output[j]
                    if t >= 0 and self.where[t] == 0:
                        f += self.rule_coefficient(giver, t, c) * (
                            self.map.base[j] if i < 0 else self.map.unit[i] * self.map.matrix[i * q + j])
                self.set_weight(taker, s, c, f)
            if v != NULL:
                for i in range(v.n):
                    s = v.slot[i]
                    if s and self.local[giver].of[s] > 0:
                        self.set_weight(taker, s, c, self.rule_coefficient(giver, s, c))
        if v != NULL:
            self.mark(v, False)

    cdef void set_weight(self, int e, int32_t slot, int c, double f) noexcept nogil:
        cdef int32_t i = self.take(e, slot)
        if e == 0:
            at(self.first, i, c)[0] = f
        else:
            at(self.second, i, c)[0] = f

    # ---------------------------------------------------------------- looking inside

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef bint binary = self.first.problems == 1
        cdef double sign = -1.0 if binary and label == 0 else 1.0
        cdef double a[2]
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2:
            return
        self.weights(v, a)
        if a[0] != 0.0:
            self.explain_part(self.old, v, 0 if binary else label, sign * a[0], out)
        if a[1] != 0.0:
            self.explain_part(1 - self.old, v, 0 if binary else label, sign * a[1], out)

    cdef void explain_part(self, int e, View* v, int c, double sign, double* out) noexcept nogil:
        """Add what each entry brings to a rule's score; what an old feature brings goes back through the map."""
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
        """Weights of the models that run, an input of the map with those of the old features it stands for."""
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

    def role(self, Py_ssize_t slot):
        """'new': joined with the overlap that runs or with the last switch; 'mapped': gone, recovered from the new
        ones; 'old': any other feature."""
        cdef Py_ssize_t j
        cdef int32_t s = <int32_t> slot
        column = self.space.column[s]
        if self.phases.group[column] == JOINED:
            return "new"
        if self.phases.group[column] == GONE:
            return "mapped" if any(self.map.output[j] == s for j in range(self.map.outputs)) else "old"
        if self.phases.switches and seen_first(&self.space.seen[s]) >= self.phases.last_start:
            return "new"
        return "old"

    def switches(self):
        """Steps of the switches so far."""
        return self.phases.steps()

    def mix(self):
        """Weights of the old and the new model, None when one runs alone."""
        cdef double a[2]
        if not self.two:
            return None
        experts_weights(&self.experts, a)
        return a[0], a[1]

    def notes(self):
        said = []
        steps = self.phases.steps()
        if steps:
            said.append(f"{len(steps)} switch{'es' if len(steps) > 1 else ''} of the feature space, the last at step "
                        f"{steps[len(steps) - 1]:,}; {self.map.outputs} old features are recovered from {self.map.inputs} new ones")
        if self.phases.overlapping:
            said.append(f"an overlap runs since step {self.phases.joined_at:,}: {self.overlap.rows} instances showed "
                        "old and new features together")
        if self.maps_missed or self.overlap.full:
            said.append(f"a map had more than max_dense={self.overlap.most} features on a side and was not learned")
        return said + self.first.notes()

    # ---------------------------------------------------------------- keeping

    def dump(self, Py_ssize_t size):
        cdef double held[3]
        cdef Py_ssize_t i
        cdef Locals* l
        arrays = Model.dump(self, size)
        for e, rule in enumerate((self.first, self.second)):
            l = &self.local[e]
            for key, array in rule.dump(l.n).items():
                arrays[f"rule{e}.{key}"] = array
            arrays[f"rule{e}.slots"] = np.array([l.slot[i] for i in range(l.n)], dtype=np.int32)
            arrays[f"rule{e}.spare"] = np.array([l.spare[i] for i in range(l.spares)], dtype=np.int32)
        experts_dump(&self.experts, held)
        arrays["experts"] = np.array([held[0], held[1], held[2], self.recent[0], self.recent[1]])
        arrays["course"] = np.array([self.old, self.two, self.heir, self.frozen, self.local[0].sealed,
                                     self.local[1].sealed, self.maps_missed], dtype=np.int64)
        return {**arrays, **self.phases.dump(size), **self.map.dump(), **self.overlap.dump()}

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double held[3]
        cdef Py_ssize_t i
        cdef Locals* l
        Model.fill(self, arrays, capacity)
        self.grow(capacity)
        for e, rule in enumerate((self.first, self.second)):
            l = &self.local[e]
            prefix = f"rule{e}."
            rule.fill({key[6:]: a for key, a in arrays.items() if key.startswith(prefix)}, capacity)
            slots, spare = arrays[prefix + "slots"], arrays[prefix + "spare"]
            l.n = len(slots)
            for i in range(l.n):
                l.slot[i] = slots[i]
                if slots[i] >= 0:
                    l.of[<int> slots[i]] = <int32_t> i
            l.spares = len(spare)
            for i in range(l.spares):
                l.spare[i] = spare[i]
        self.first_space.size = self.local[0].n
        self.second_space.size = self.local[1].n
        held[0], held[1], held[2], self.recent[0], self.recent[1] = (float(x) for x in arrays["experts"])
        experts_fill(&self.experts, held)
        course = [int(x) for x in arrays["course"]]
        self.old, self.two, self.heir, self.frozen = course[0], bool(course[1]), course[2], bool(course[3])
        self.local[0].sealed, self.local[1].sealed, self.maps_missed = bool(course[4]), bool(course[5]), course[6]
        self.phases.fill(arrays)
        self.map.fill(arrays)
        self.overlap.fill(arrays)
        for i in range(self.overlap.inputs):
            if self.overlap.input[i] > 0:
                self.column_of[self.overlap.input[i]] = <int32_t> (i + 1)

    def nbytes(self):
        return self.first.nbytes() + self.second.nbytes() + self.map.nbytes() + self.overlap.nbytes()
