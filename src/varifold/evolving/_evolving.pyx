"""A switch of the feature space: the old model on recovered features, a new one, and their mixture.

Before any switch one rule runs. During an overlap it keeps to the old features while the map new -> old is gathered.
At the switch it becomes the old model, which sees what is still there as it is and the rest through the map; the other
rule starts afresh on what is seen. At the next switch the one that did better of late is carried over. The rules are
any two BinaryRules of a kind whose first number a slot is a weight.
"""

import numpy as np

from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from varifold._numeric.hedge cimport (
    ANYTIME, HORIZON, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_weights,
)
from varifold.evolving._feature_map cimport FeatureMap, Overlap
from varifold._engine.one_vs_rest cimport BinaryRule
from varifold.evolving._switch_detector cimport ABSORB, GONE, JOIN, JOINED, Phases, SWITCH
from varifold.evolving._rule_pair cimport Locals, RulePair
from varifold._engine.space cimport seen_first
from varifold._engine.view cimport View
from varifold.evolving._feature_map import checked, reals

PARTS = {"new": NEW, "frozen": FROZEN, "updated": UPDATED, "mean": MEAN, "drawn": DRAWN, "heavier": HEAVIER}
cdef double UNBOUNDED = 1e50      # what recovered values are held within when no scaler bounds them
cdef double RECENT = 1.0 / 32.0    # share of the last loss in the running mean that chooses who is carried over


cdef inline double uniform(uint64_t seed, uint64_t step) noexcept nogil:
    """A number in [0, 1) that depends on seed and step alone (splitmix64)."""
    cdef uint64_t z = seed * <uint64_t> 0xD1342543DE82EF95 + (step + 1) * <uint64_t> 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return ((z ^ (z >> 31)) >> 11) * (1.0 / 9007199254740992.0)


cdef class EvolvingModel(RulePair):
    def __cinit__(self, BinaryRule first not None, BinaryRule second not None, str parts, *, Phases phases not None,
                  bint logistic=False, bint transfer=False, bint centred=False, bint spread=False, double ridge=0.0,
                  double bound=0.0, horizon=None, Py_ssize_t max_dense=512, seed=0):
        self.first = first
        self.second = second
        self.phases = phases
        self.parts = PARTS[parts]
        self.logistic = logistic
        self.transfer = transfer
        self.centred = centred
        self.bound = bound if bound > 0.0 else UNBOUNDED
        self.seed = seed
        self.map = FeatureMap(ridge, spread)
        self.overlap = Overlap(max_dense)
        self.wants_columns = True
        if experts_make(&self.experts, 2, ANYTIME if horizon is None else HORIZON,
                        0.0 if horizon is None else horizon, 0.0 if self.parts == MEAN else -1.0) < 0:
            raise MemoryError

    def __dealloc__(self):
        experts_free(&self.experts)
        free(self.column_of)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t old = self.capacity
        RulePair.grow(self, capacity)
        if self.capacity == old:
            return 0
        self.phases.grow(self.space, capacity)
        self.column_of = <int32_t*> realloc(self.column_of, capacity * sizeof(int32_t))
        if self.column_of == NULL:
            raise MemoryError
        memset(self.column_of + old, 0, (capacity - old) * sizeof(int32_t))
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        RulePair.forget(self, slot)
        self.overlap.forget(slot)
        self.phases.forget(slot)
        self.column_of[slot] = 0

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

    def dump(self, Py_ssize_t size):
        cdef double held[3]
        experts_dump(&self.experts, held)
        return {
            **RulePair.dump(self, size), **self.phases.dump(size), **self.overlap.dump(),
            "experts": np.array([held[0], held[1], held[2], self.recent[0], self.recent[1]]),
            "course": np.array([self.heir, self.frozen, self.maps_missed], dtype=np.int64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double held[3]
        cdef Py_ssize_t i
        RulePair.fill(self, arrays, capacity)
        held[0], held[1], held[2], self.recent[0], self.recent[1] = reals(arrays, "experts", (5,)).tolist()
        experts_fill(&self.experts, held)
        course = checked(arrays, "course", 3, 0, 2**62)
        self.heir = int(course[0] != 0)
        self.frozen = bool(course[1])
        self.maps_missed = int(course[2])
        self.phases.fill(arrays)
        self.overlap.fill(arrays, capacity)
        for i in range(self.overlap.inputs):
            if self.overlap.input[i] > 0:
                self.column_of[self.overlap.input[i]] = <int32_t> (i + 1)

    def nbytes(self):
        return RulePair.nbytes(self) + self.overlap.nbytes()
