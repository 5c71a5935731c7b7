"""A switch of the feature space: the old model on recovered features, a new one, and their mixture (CWFE, FESL, PAFE).

Before any switch one rule runs. During an overlap it uses only the old features while rows for the map new -> old are
collected. At the switch it becomes the old model: it sees features still present directly and the others through the
map. The other rule starts from zero on the features present. At the next switch the rule with the smaller recent loss
is carried over. The rules are any two BinaryRules of one kind whose first number per slot is a weight.
"""

import numpy as np

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from varifold._engine.models.one_vs_rest cimport BinaryRule
from varifold._engine.names.space cimport seen_first
from varifold._engine.view cimport View
from varifold._numeric.hashing cimport mix, unit_interval
from varifold._numeric.hedge cimport (
    ANYTIME, HORIZON, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_weights,
)
from varifold.evolving._feature_map cimport FeatureMap
from varifold.evolving._overlap cimport Overlap
from varifold.evolving._rule_pair cimport Locals, RulePair
from varifold.evolving._switch_detector cimport ABSORB, GONE, JOIN, JOINED, SWITCH, UNKNOWN, SwitchDetector

from varifold._engine.state import checked_array, per_slot

PARTS = {"new": NEW, "frozen": FROZEN, "updated": UPDATED, "mean": MEAN, "drawn": DRAWN, "heavier": HEAVIER}
cdef double UNBOUNDED = 1e50      # bound of recovered values when no scaler bounds them
cdef double RECENT = 1.0 / 32.0    # weight of the latest loss in the running mean that selects the rule carried over


cdef inline double uniform(uint64_t seed, uint64_t step) noexcept nogil:
    """Return a pseudo-random number in [0, 1) that depends only on seed and step."""
    return unit_interval(mix(seed * <uint64_t> 0xD1342543DE82EF95 + step * <uint64_t> 0x9E3779B97F4A7C15))


cdef class EvolvingModel(RulePair):
    """Two rules, the map between their features, and the choice of models that run after a switch."""

    def __cinit__(self, BinaryRule first not None, BinaryRule second not None, str parts, *,
                  SwitchDetector detector not None, bint logistic=False, bint transfer=False, bint centred=False,
                  bint spread=False, double ridge=0.0, double bound=0.0, horizon=None, Py_ssize_t max_dense=512,
                  seed=0):
        self.first = first
        self.second = second
        self.detector = detector
        self.parts = PARTS[parts]
        self.logistic = logistic
        self.transfers = transfer
        self.centred = centred
        self.bound = bound if bound > 0.0 else UNBOUNDED
        self.seed = seed
        self.map = FeatureMap(ridge, spread)
        self.overlap = Overlap(max_dense)
        self.wants_columns = True
        self.prepares = True
        self.arrays.scratch(&self.column_of, per_slot())
        if first.prepares or second.prepares:
            raise TypeError(f"{type(first).__name__} allocates by instance; an evolving model needs rules that do not")
        if experts_make(&self.experts, 2, ANYTIME if horizon is None else HORIZON,
                        0.0 if horizon is None else horizon, 0.0 if self.parts == MEAN else -1.0) < 0:
            raise MemoryError

    def __dealloc__(self):
        experts_free(&self.experts)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.detector.grow(self.space, capacity)
        return RulePair.grow(self, capacity)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        """Reserve memory for one more row of the overlap and for the map, in case this instance triggers the switch."""
        self.detector.prepare()
        if self.detector.overlapping or self.detector.may_join(slots, n, n_new):
            self.reserve_overlap(slots, n, n_new)
        return 0

    cdef int reserve_overlap(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) except -1 nogil:
        """Reserve memory for all inputs and outputs that the overlap can have after this instance."""
        cdef Py_ssize_t i, inputs = self.overlap.inputs + n_new + 1
        cdef Py_ssize_t outputs[2]
        cdef int e
        cdef int32_t group
        for e in range(2):
            outputs[e] = self.local[e].n - 1 + n_new
        for i in range(n):
            group = self.detector.group[self.space.column[slots[i]]]
            inputs += ((group == JOINED or group == UNKNOWN)
                       and (self.column_of[slots[i]] == 0 or not self.detector.overlapping))
            for e in range(2):
                outputs[e] += group != JOINED and self.local[e].of[slots[i]] < 0
        self.overlap.reserve(inputs, max(outputs[0], outputs[1]))
        self.map.reserve_solve(self.overlap.capacity_in, self.overlap.capacity_out)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        RulePair.forget(self, slot)
        self.overlap.forget(slot)
        self.detector.forget(slot)
        self.column_of[slot] = 0

    # ---------------------------------------------------------------- predicting

    cdef void weights(self, View* v, double* a) noexcept nogil:
        """Compute the weights of the old (0) and the new model (1) in this prediction (CWFE, eqs. 8 to 10)."""
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
            self.lay_out(k, v)
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
        cdef int event = self.detector.observe(v), growing
        cdef double losses[2]
        if event == JOIN:
            self.begin_overlap()
        elif event == ABSORB:
            self.detector.absorb()
            self.overlap.clear()
            self.map.release_solve()
        elif event == SWITCH:
            self.switch(v)
        growing = 1 - self.old if self.two else self.old
        self.admit(growing, v)
        if self.detector.pairs:
            self.collect(v, w)
        self.lay_out(self.old, v)
        if self.two:
            losses[0] = self.rule_loss(self.old, y)
        if not self.frozen:
            self.rule_learn(self.old, y, w)
        if self.two:
            self.lay_out(growing, v)
            losses[1] = self.rule_loss(growing, y)
            self.rule_learn(growing, y, w)
            experts_learn(&self.experts, losses, w)
            self.recent[0] += RECENT * (losses[0] - self.recent[0])
            self.recent[1] += RECENT * (losses[1] - self.recent[1])
        if self.detector.due(v.step + 1):
            self.switch(NULL)

    cdef void admit(self, int e, View* v) noexcept nogil:
        """Add the instance's features to a rule that still grows, except features that joined in this overlap."""
        cdef Py_ssize_t i
        cdef int32_t s
        if self.local[e].sealed:
            return
        for i in range(v.n):
            s = v.slot[i]
            if self.local[e].of[s] < 0 and self.detector.group[self.space.column[s]] != JOINED:
                self.local_slot(e, s)

    cdef void begin_overlap(self) noexcept nogil:
        """Begin an overlap: select the rule whose features the map predicts."""
        cdef Py_ssize_t i
        self.successor = 1 - self.old if self.two and self.recent[1] <= self.recent[0] else self.old
        self.overlap.clear()
        for i in range(self.capacity):
            self.column_of[i] = 0
        if self.centred:
            self.overlap.add_input(0, 1.0)

    cdef void collect(self, View* v, double w) noexcept nogil:
        """Add a row to the overlap: raw values of joined features, and the successor's features as it sees them."""
        cdef Py_ssize_t i
        cdef int32_t s
        cdef Locals* l = &self.local[self.successor]
        for i in range(v.n):
            s = v.slot[i]
            if s and self.column_of[s] == 0 and self.detector.group[self.space.column[s]] == JOINED:
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
        self.lay_out(self.successor, v)
        for i in range(self.inner.n):
            if self.inner.slot[i]:
                self.overlap.row_y[self.inner.slot[i] - 1] = self.inner.x[i]
        self.overlap.add_row(w)

    cdef bint stays(self, View* v) noexcept nogil:
        """Test whether the instance still has a feature of the successor."""
        cdef Py_ssize_t i
        if v != NULL:
            for i in range(v.n):
                if v.slot[i] and self.local[self.successor].of[v.slot[i]] > 0:
                    return True
        return False

    cdef void switch(self, View* v) noexcept nogil:
        """Switch to the new features; v is the first instance without the old ones, NULL before it arrives."""
        cdef bint mapped
        if not self.detector.overlapping:
            self.begin_overlap()
        mapped = self.map.solve(self.overlap)
        self.maps_missed += self.overlap.full
        self.old = self.successor
        if self.parts == NEW or not (mapped or self.stays(v)):
            self.wipe(1 - self.successor)
            if self.transfers and mapped:
                self.transfer_weights(self.successor, 1 - self.successor, v)
            self.old = 1 - self.successor
            self.two = False
            self.map.clear()
        elif self.parts == FROZEN or self.parts == UPDATED:
            self.local[self.old].sealed = True
            self.frozen = self.parts == FROZEN
        else:
            self.wipe(1 - self.successor)
            if self.transfers and mapped:
                self.transfer_weights(self.successor, 1 - self.successor, v)
            self.local[self.old].sealed = True
            self.two = True
            self.recent[0] = self.recent[1] = 1.0
            self.experts.rounds = 0.0
            self.experts.held[0] = 0.0
            self.experts.held[1] = 0.0
        self.restart(self.successor)
        self.detector.record_switch(v)
        self.overlap.clear()
        self.map.release_solve()

    cdef void transfer_weights(self, int giver, int taker, View* v) noexcept nogil:
        """Set the new model's weights so that it predicts as the old one does through the map: w2 = M w1 (PAFE)."""
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
        """Return 'new' for a feature that joined in the current overlap or at the last switch, 'mapped' for one that
        has gone and is recovered from the new ones, else 'old'."""
        cdef Py_ssize_t j
        cdef int32_t s = <int32_t> slot
        if not 0 <= slot < self.space.size:
            raise IndexError(f"no feature has the slot {slot}; there are {self.space.size}")
        column = self.space.column[s]
        if self.detector.group[column] == JOINED:
            return "new"
        if self.detector.group[column] == GONE:
            return "mapped" if any(self.map.output[j] == s for j in range(self.map.outputs)) else "old"
        if self.detector.switches and seen_first(&self.space.seen[s]) >= self.detector.last_start:
            return "new"
        return "old"

    def switches(self) -> list[int]:
        """Return the steps of the switches so far."""
        return self.detector.steps()

    def mix(self):
        """Return the weights of the old and the new model, or None when only one runs."""
        cdef double a[2]
        if not self.two:
            return None
        experts_weights(&self.experts, a)
        return a[0], a[1]

    def notes(self):
        notes = []
        steps = self.detector.steps()
        if steps:
            notes.append(f"{len(steps)} switch{'es' if len(steps) > 1 else ''} of the feature space, the last at step "
                         f"{steps[len(steps) - 1]:,}; {self.map.outputs} old features are recovered from {self.map.inputs} new ones")
        if self.detector.overlapping:
            notes.append(f"an overlap runs since step {self.detector.joined_at:,}: {self.overlap.rows} "
                         f"instance{'s' * (self.overlap.rows != 1)} showed old and new features together")
        if self.maps_missed or self.overlap.full:
            notes.append(f"a map had more than max_dense={self.overlap.most} features on a side and was not learned")
        return notes + self.first.notes()

    def dump(self, Py_ssize_t size):
        cdef double held[3]
        experts_dump(&self.experts, held)
        return {
            **RulePair.dump(self, size), **self.detector.dump(size), **self.overlap.dump(),
            "experts": np.array([held[0], held[1], held[2], self.recent[0], self.recent[1]]),
            "course": np.array([self.successor, self.frozen, self.maps_missed], dtype=np.int64),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double held[3]
        cdef Py_ssize_t i
        RulePair.fill(self, arrays, capacity)
        held[0], held[1], held[2], self.recent[0], self.recent[1] = checked_array(
            arrays, "experts", "f", (5,)).tolist()
        experts_fill(&self.experts, held)
        course = checked_array(arrays, "course", "i", (3,), 0, 2**62)
        self.successor = int(course[0] != 0)
        self.frozen = bool(course[1])
        self.maps_missed = int(course[2])
        self.detector.fill(arrays, capacity)
        self.overlap.fill(arrays, capacity)
        for i in range(self.overlap.inputs):
            if self.overlap.input[i] > 0:
                self.column_of[self.overlap.input[i]] = <int32_t> (i + 1)

    def nbytes(self):
        return RulePair.nbytes(self) + self.detector.nbytes() + self.overlap.nbytes()
