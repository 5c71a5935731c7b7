"""OVFIV: a learner on the values and a sparse learner on which columns are absent, mixed by exponential weights."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from varifold._numeric.hedge cimport (
    Experts, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_size, experts_weights,
)
from varifold.linear._ftrl cimport Penalty, Proximal, proximal_step
from varifold._engine.model cimport Model
from varifold._engine.names cimport COLUMN, NUMERIC
from varifold._engine.space cimport Space, seen_count
from varifold._engine.view cimport View

from varifold._engine.state import checked_array

from varifold._numeric.hedge import RATES

cdef enum:
    LOOK = 64        # instances between looks at the encoding
    VALUES = 0       # the experts
    VARIATION = 1

cdef double FEW = 0.1  # below this share of columns present, presence is the cheaper encoding

INTERCEPT = "(intercept)"


cdef inline double unit(double p) noexcept nogil:
    return 0.0 if p < 0.0 else (1.0 if p > 1.0 else p)


cdef class OVFIVModel(Model):
    """Scores are 2 p - 1, p being the mixed probability of the class."""

    def __cinit__(self, Model base not None, str rate, double eta, double L1, double alpha, double beta, double L2,
                  str encode, bint bias=True, bint only_variation=False):
        self.base = base
        self.bias = bias
        self.only_variation = only_variation
        self.wants_columns = True
        self.sees_empty = True
        self.penalty.slowness = 1.0 / alpha
        self.penalty.beta = beta
        self.penalty.l1 = L1
        self.penalty.l2 = L2
        self.presence = encode == "presence"
        self.auto = encode == "auto" and bias  # the other encoding of a function needs a bias
        self.problems = 1
        if experts_make(&self.experts, 2, RATES[rate], eta, 0.0) < 0:
            raise MemoryError
        self.make_room(2)

    def __dealloc__(self):
        experts_free(&self.experts)
        free(self.table)
        free(self.counts)
        free(self.base_score)
        free(self.base_proba)
        free(self.own_proba)
        free(self.familiar_slot)
        free(self.familiar_column)
        free(self.familiar_x)
        free(self.familiar_raw)
        free(self.familiar_fresh)

    # ---------------------------------------------------------------- room

    cdef int attach(self, Space space) except -1:
        self.base.attach(space)
        Model.attach(self, space)
        return 0

    cdef int make_room(self, Py_ssize_t room) except -1:
        """Numbers by class for `room` classes."""
        self.counts = <double*> realloc(self.counts, room * sizeof(double))
        self.base_score = <double*> realloc(self.base_score, room * sizeof(double))
        self.base_proba = <double*> realloc(self.base_proba, room * sizeof(double))
        self.own_proba = <double*> realloc(self.own_proba, room * sizeof(double))
        if self.counts == NULL or self.base_score == NULL or self.base_proba == NULL or self.own_proba == NULL:
            raise MemoryError
        memset(self.counts + self.room, 0, (room - self.room) * sizeof(double))
        self.room = room
        return 0

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef Py_ssize_t row = self.problems
        if self.base.capacity < capacity:
            self.base.grow(capacity)
        if capacity <= self.capacity:
            return 0
        self.table = <Proximal*> realloc(self.table, capacity * row * sizeof(Proximal))
        self.familiar_slot = <int32_t*> realloc(self.familiar_slot, capacity * sizeof(int32_t))
        self.familiar_column = <int32_t*> realloc(self.familiar_column, capacity * sizeof(int32_t))
        self.familiar_x = <double*> realloc(self.familiar_x, capacity * sizeof(double))
        self.familiar_raw = <double*> realloc(self.familiar_raw, capacity * sizeof(double))
        self.familiar_fresh = <uint8_t*> realloc(self.familiar_fresh, capacity)
        if (self.table == NULL or self.familiar_slot == NULL or self.familiar_column == NULL
                or self.familiar_x == NULL or self.familiar_raw == NULL or self.familiar_fresh == NULL):
            raise MemoryError
        memset(self.table + self.capacity * row, 0, (capacity - self.capacity) * row * sizeof(Proximal))
        memset(self.familiar_fresh, 0, capacity)
        self.capacity = capacity
        return 0

    cdef int add_class(self) except -1:
        cdef int old = self.problems, new
        cdef Py_ssize_t slot
        cdef Proximal* table
        cdef Proximal* s
        self.base.add_class()
        self.classes += 1
        if self.classes > self.room:
            self.make_room(2 * self.room)
        if self.classes <= 2:
            return 0
        new = self.classes
        table = <Proximal*> calloc(self.capacity * new, sizeof(Proximal))
        if table == NULL:
            raise MemoryError
        for slot in range(self.capacity):
            memcpy(table + slot * new, self.table + slot * old, old * sizeof(Proximal))
            if old == 1:
                table[slot * new + 1] = self.table[slot]
                s = &table[slot * new]
                s.z = -s.z
                s.w = -s.w
        free(self.table)
        self.table = table
        self.problems = new
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.base.forget(slot)
        memset(self.table + slot * self.problems, 0, self.problems * sizeof(Proximal))

    # ---------------------------------------------------------------- answering

    cdef inline Proximal* cell(self, Py_ssize_t slot, int c) noexcept nogil:
        return self.table + slot * self.problems + c

    cdef double vary(self, View* v, int c) noexcept nogil:
        """The variation learner's score: bias and the weights of the columns that count."""
        cdef double f = self.cell(0, c).w
        cdef Py_ssize_t i, slot
        cdef uint8_t* kind = self.space.kind
        if self.presence:
            for i in range(v.columns):
                f += self.cell(v.column[i], c).w
            return f
        i = 0
        for slot in range(1, self.space.size):
            if i < v.columns and v.column[i] == slot:
                i += 1
            elif kind[slot] & (NUMERIC | COLUMN):
                f += self.cell(slot, c).w
        return f

    cdef double judge(self, View* v) noexcept nogil:
        """Probabilities of both learners into scratch; returns the weight of the learner on values."""
        cdef int c, k = self.classes
        cdef double total = 0.0
        cdef double weights[2]
        if v.n == 0 or (v.n == 1 and v.slot[0] == 0):
            if not self.base.sees_empty:
                for c in range(k):
                    total += self.counts[c]
                for c in range(k):
                    self.base_proba[c] = self.counts[c] / total if total > 0.0 else 1.0 / k
                    self.base_score[c] = 0.0
                total = -1.0
        if total >= 0.0:
            self.base.scores(v, self.base_score)
            if k == 1:
                self.base_proba[0] = 1.0
            else:
                self.base.proba(self.base_score, self.base_proba)
        if k == 1:
            self.own_proba[0] = 1.0
        elif k == 2:
            self.varied = self.vary(v, 0)
            self.own_proba[1] = unit(0.5 * (1.0 + self.varied))
            self.own_proba[0] = 1.0 - self.own_proba[1]
        else:
            total = 0.0
            for c in range(k):
                self.own_proba[c] = unit(0.5 * (1.0 + self.vary(v, c)))
                total += self.own_proba[c]
            for c in range(k):
                self.own_proba[c] = self.own_proba[c] / total if total > 0.0 else 1.0 / k
        if self.only_variation:
            return 0.0
        experts_weights(&self.experts, weights)
        return weights[VALUES]

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        cdef double share
        if self.classes == 1:
            out[0] = 0.0
            return
        share = self.judge(v)
        for c in range(self.classes):
            out[c] = 2.0 * (share * self.base_proba[c] + (1.0 - share) * self.own_proba[c]) - 1.0

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = 0.5 * (1.0 + scores[c])

    # ---------------------------------------------------------------- learning

    cdef View* without_fresh(self, View* v) noexcept nogil:
        """The instance as it looks to a prediction: without slots and columns met only now."""
        cdef Py_ssize_t i, n = 0
        cdef View* f = &self.familiar
        cdef bint any_new = False
        for i in range(v.n):
            if v.is_new[i]:
                any_new = True
        if not any_new:
            return v
        f[0] = v[0]
        for i in range(v.n):
            if v.slot[i] != 0 and v.is_new[i]:
                f.known -= 1
                continue
            self.familiar_slot[n] = v.slot[i]
            self.familiar_x[n] = v.x[i]
            self.familiar_raw[n] = v.raw[i]
            n += 1
        f.n = n
        f.slot = self.familiar_slot
        f.x = self.familiar_x
        f.raw = self.familiar_raw
        f.is_new = self.familiar_fresh
        n = 0
        for i in range(v.columns):
            if seen_count(&self.space.seen[v.column[i]]) > 0:
                self.familiar_column[n] = v.column[i]
                n += 1
        f.columns = n
        f.column = self.familiar_column
        return f

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int c
        cdef double losses[2]
        cdef double d, target, f
        cdef View* familiar = self.without_fresh(v)
        self.judge(familiar)
        losses[VALUES] = 0.0
        losses[VARIATION] = 0.0
        for c in range(self.classes):
            target = 1.0 if c == y else 0.0
            d = target - self.base_proba[c]
            losses[VALUES] += 0.5 * d * d
            d = target - self.own_proba[c]
            losses[VARIATION] += 0.5 * d * d
        experts_learn(&self.experts, losses, w)
        if v.n > 1 or (v.n == 1 and v.slot[0] != 0) or self.base.sees_empty:
            self.base.learn(v, y, w)
        for c in range(self.problems):
            target = 1.0 if y == (c if self.problems > 1 else 1) else -1.0
            f = self.varied if familiar == v and self.classes == 2 else self.vary(v, c)
            self.step(v, c, 2.0 * w * (f - target))
        self.counts[y] += w
        self.rounds += 1.0
        if self.auto and not self.presence:
            self.consider_encoding(v)

    cdef void step(self, View* v, int c, double gradient) noexcept nogil:
        """A step down the square loss for the bias and the columns that count."""
        cdef Py_ssize_t i, slot
        cdef uint8_t* kind = self.space.kind
        cdef Penalty* p = &self.penalty
        if self.bias:
            proximal_step(self.cell(0, c), p, 0.0, gradient)
        if self.presence:
            for i in range(v.columns):
                proximal_step(self.cell(v.column[i], c), p, p.l1, gradient)
            return
        i = 0
        for slot in range(1, self.space.size):
            if i < v.columns and v.column[i] == slot:
                i += 1
            elif kind[slot] & (NUMERIC | COLUMN):
                proximal_step(self.cell(slot, c), p, p.l1, gradient)

    cdef void consider_encoding(self, View* v) noexcept nogil:
        """Every LOOK instances: go over to presence for good when few of the known columns are present."""
        cdef Py_ssize_t slot
        self.there += v.columns
        for slot in range(1, self.space.size):
            if self.space.kind[slot] & (NUMERIC | COLUMN):
                self.known += 1.0
        if self.rounds % LOOK == 0.0:
            if self.there < FEW * self.known:
                self.turn_round()
            self.there = 0.0
            self.known = 0.0

    cdef void turn_round(self) noexcept nogil:
        """From absence to presence: the same function, b + sum of all weights less those of the columns present."""
        cdef int c
        cdef Py_ssize_t slot
        cdef Proximal* s
        cdef double bias
        for c in range(self.problems):
            bias = self.cell(0, c).w
            for slot in range(1, self.space.size):
                s = self.cell(slot, c)
                bias += s.w
                s.z = -s.z
                s.w = -s.w
            s = self.cell(0, c)
            s.w = bias
            s.z = -bias * ((self.penalty.beta + s.root) * self.penalty.slowness + self.penalty.l2)
        self.presence = True

    # ---------------------------------------------------------------- looking and keeping

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.base.magnitude(slot)

    cdef double factor(self, View* v, int label) noexcept nogil:
        """What a unit of the base learner's score is worth in the mixed one."""
        cdef double share = self.judge(v), f = 2.0 * self.base_proba[label] - 1.0
        return share * unit(f / self.base_score[label] if fabs(self.base_score[label]) > 1e-12 else 0.5)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """The values' part, on the scale of the mixed score; what does not scale is told by absent_contributions()."""
        cdef Py_ssize_t i
        cdef double factor
        memset(out, 0, v.n * sizeof(double))
        if self.classes < 2 or (not self.base.sees_empty and (v.n == 0 or (v.n == 1 and v.slot[0] == 0))):
            return
        factor = self.factor(v, label)
        self.base.contributions(v, label, out)
        for i in range(v.n):
            out[i] *= factor

    cdef dict absent_contributions(self, View* v, int label):
        """What absences (or presences) say, by column, and under the intercept what is left of the score."""
        cdef Py_ssize_t i, slot
        cdef int c = label if self.problems > 1 else 0
        cdef double share, f, scale, rest, sign = -1.0 if self.problems == 1 and label == 0 else 1.0
        cdef double[::1] values = np.zeros(max(1, v.n))
        parts = {}
        if self.classes < 2:
            return parts
        self.contributions(v, label, &values[0])
        share = self.judge(v)
        rest = 2.0 * (share * self.base_proba[label] + (1.0 - share) * self.own_proba[label]) - 1.0
        for i in range(v.n):
            rest -= values[i]
        if v.n > 1 or (v.n == 1 and v.slot[0] != 0) or self.base.sees_empty:
            for key, part in self.base.absent_contributions(v, label).items():
                parts[key] = self.factor(v, label) * part
                rest -= parts[key]
        f = self.vary(v, c)
        scale = sign * (1.0 - share) * (1.0 if fabs(f) <= 1.0 else 1.0 / fabs(f))
        i = 0
        for slot in range(1, self.space.size):
            present = i < v.columns and v.column[i] == slot
            i += present
            if present != self.presence or not self.space.kind[slot] & (NUMERIC | COLUMN):
                continue
            if self.cell(slot, c).w != 0.0:
                said = scale * self.cell(slot, c).w
                parts[f"{<object> self.space.key[slot]} ({'present' if present else 'absent'})"] = said
                rest -= said
        parts[INTERCEPT] = rest
        return parts

    def calls_python(self):
        return self.base.calls_python()

    def pending_error(self):
        return self.base.pending_error()

    def weights(self):
        """Weights of the learner on values and the learner on variation in the round to come."""
        cdef double[::1] out = np.zeros(2)
        if self.only_variation:
            return 0.0, 1.0
        experts_weights(&self.experts, &out[0])
        return float(out[0]), float(out[1])

    def nonzero(self):
        """How many columns have a weight in the variation learner, for the first problem."""
        cdef Py_ssize_t slot
        return sum(1 for slot in range(1, self.space.size) if self.cell(slot, 0).w != 0.0)

    def notes(self):
        encoding = "the columns present" if self.presence else "the columns absent"
        return [f"the variation learner looks at {encoding}", *self.base.notes()]

    def role(self, Py_ssize_t slot):
        return self.base.role(slot)

    def dump(self, Py_ssize_t size):
        cdef double[:, :, ::1] view = np.zeros((size, self.problems, 3))
        cdef double[::1] mixing = np.zeros(experts_size(&self.experts))
        memcpy(&view[0, 0, 0], self.table, size * self.problems * sizeof(Proximal))
        experts_dump(&self.experts, &mixing[0])
        arrays = Model.dump(self, size)
        arrays["variation"] = np.asarray(view)
        arrays["experts"] = np.asarray(mixing)
        arrays["counts"] = np.array([self.counts[c] for c in range(self.classes)], dtype=np.float64)
        arrays["encoding"] = np.array([self.presence, self.there, self.known, self.rounds], dtype=np.float64)
        for name, array in self.base.dump(size).items():
            arrays["base." + name] = array
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef const double[:, :, ::1] view = checked_array(arrays, "variation", "f", (None, None, 3))
        cdef const double[::1] mixing = checked_array(arrays, "experts", "f", (experts_size(&self.experts),))
        cdef int c
        self.base.fill({name[5:]: a for name, a in arrays.items() if name.startswith("base.")}, capacity)
        Model.fill(self, arrays, capacity)
        checked_array(arrays, "counts", "f", (self.classes,), 0)
        checked_array(arrays, "encoding", "f", (4,))
        if view.shape[0] > capacity or view.shape[0] == 0 or view.shape[1] != (self.classes if self.classes > 2 else 1):
            raise ValueError("the table of variation does not fit the features")
        if self.classes > self.room:
            self.make_room(self.classes)
        free(self.table)
        self.table = NULL
        self.capacity = 0
        self.problems = view.shape[1]
        OVFIVModel.grow(self, capacity)
        memcpy(self.table, &view[0, 0, 0], view.shape[0] * self.problems * sizeof(Proximal))
        experts_fill(&self.experts, &mixing[0])
        for c in range(self.classes):
            self.counts[c] = arrays["counts"][c]
        presence, self.there, self.known, self.rounds = arrays["encoding"].tolist()
        self.presence = presence != 0.0

    def nbytes(self):
        return self.capacity * (self.problems * sizeof(Proximal) + 2 * sizeof(int32_t) + 17) + self.base.nbytes()
