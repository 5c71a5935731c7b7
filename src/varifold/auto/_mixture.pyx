"""Regressors mixed by their losses: experts of several kinds, their stack, and the weight of each.

All is counted in deviations of the targets from their mean. The stack is a linear combination of the experts' answers whose
weights are learned by recursive least squares, errors beyond HUBER typical ones counting as that much. The answer is the
exponentially weighted mixture of the experts and the stack, with a little of the weight shared out each round. A loss is
the error over the typical error of the answers, at most WORST of them, squared or not, over its largest value: it lies in
[0, 1], so that over T rounds the mixture's summed loss exceeds that of the best of the k experts and the stack by at most
ln(k + 4) / eta + T eta / 8 plus the price of sharing.
"""

import numpy as np

from libc.math cimport fabs, isfinite, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from varifold._engine.model cimport Model, model_calls
from varifold._engine.regression_model cimport RegressionModel, Target, regression_calls
from varifold._engine.space cimport Space
from varifold._engine.view cimport View
from varifold._numeric.hedge cimport (
    FIXED as FIXED_RATE, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_size,
    experts_weights,
)
from varifold._numeric.memory cimport allocate
from varifold.auto._history cimport history_dump, history_fill, history_free, history_make, history_row, history_rows
from varifold.auto._views cimport as_columns, views_free, views_reserve

from varifold._engine.state import checked_array, fixed, per_slot

cdef double RATE = 3.0         # of the exponential weights
cdef double SHARE = 0.01       # of the weight that is shared out each round
cdef double TRUST = 4.0        # weight of the stack at the start, as a multiple of an expert's
cdef double BIAS_VARIANCE = 1.0    # of the stack's constant at the start
cdef double WORST = 4.0        # typical errors at which a loss reaches its largest value
cdef double HUBER = 3.0        # typical errors beyond which the stack counts an error as that much
cdef double MEMORY = 200.0     # rounds over which the typical error is averaged
cdef double FAR = 1e6          # no expert's answer is further from the mean, in deviations
cdef double SMALLEST = 1e-9    # of a typical error, in deviations
cdef double HEAVIEST = 100.0   # a sample weight counts no more in the stack
cdef double DRIFT = 1e-5       # added to the variances of the stack's weights each round

cdef double within(double z) noexcept nogil:
    """A number of deviations, no larger than FAR."""
    return FAR if z > FAR else -FAR if z < -FAR else z


cdef class RegressionMixture(RegressionModel):
    """Experts (see `experts.Expert`) and what combines them."""

    def __cinit__(self, experts, bint absolute=False):
        cdef int e, k
        self.experts = tuple(experts)
        self.names = [expert.name for expert in experts]
        self.models = [expert.model() for expert in experts]
        k = self.k = len(self.models)
        self.absolute = absolute
        self.sees_empty = True
        self.wants_columns = True
        self.prepares = any(model.prepares for model in self.models)
        self.calls = model_calls()
        self.regress = regression_calls()
        self.own = Target()
        self.inner = <void**> allocate(k * sizeof(void*))
        if self.inner == NULL:
            raise MemoryError
        self.arrays.scratch(&self.on_columns, fixed(k))
        self.arrays.scratch(&self.max_features, fixed(k))
        self.arrays.scratch(&self.disabled, fixed(k))
        self.arrays.declare("rounds", &self.numbers, fixed(4))
        self.arrays.declare("stack.mean", &self.mean, fixed(k + 1))
        self.arrays.declare("stack.covariance", &self.cov, fixed(k + 1, width=k + 1))
        self.arrays.scratch(&self.answer_of, fixed(k + 1))
        self.arrays.scratch(&self.portion, fixed(k + 1))
        self.arrays.scratch(&self.loss, fixed(k + 1))
        self.arrays.scratch(&self.work, fixed(k + 1))
        self.arrays.scratch(&self.share, per_slot())
        if history_make(&self.history, k + 1) < 0 or experts_make(&self.weights, k + 1, FIXED_RATE, RATE, SHARE) < 0:
            raise MemoryError
        for e, expert in enumerate(experts):
            self.inner[e] = <void*> (<RegressionModel?> self.models[e])
            self.on_columns[e] = expert.sees == "columns"
            self.max_features[e] = expert.max_columns or 0
            self.mean[e] = expert.stack_weight
            self.cov[e * (k + 1) + e] = expert.stack_variance
            self.weights.held[e] = -log(TRUST)
        self.cov[(k + 1) * (k + 1) - 1] = BIAS_VARIANCE

    def __dealloc__(self):
        free(self.inner)
        history_free(&self.history)
        experts_free(&self.weights)
        views_free(&self.views)

    # ---------------------------------------------------------------- memory

    cdef int attach(self, Space space) except -1:
        for m in self.models:
            (<RegressionModel> m).attach(space)
        return RegressionModel.attach(self, space)

    cdef int attach_target(self, Target target) except -1:
        for m in self.models:
            (<RegressionModel> m).attach_target(self.own)
        return RegressionModel.attach_target(self, target)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        cdef int e
        if views_reserve(&self.views, capacity + 1) < 0:
            raise MemoryError
        for e in range(self.k):
            if not self.disabled[e]:
                (<RegressionModel> self.models[e]).grow(capacity)
        return RegressionModel.grow(self, capacity)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        cdef int e
        for e in range(self.k):
            if not self.disabled[e]:
                self.calls.prepare(self.inner[e], slots, n, n_new, y)
        return 0

    cdef int become(self, RegressionMixture other) except -1:
        """Take the experts and all that was learned about them from a mixture that is used no more."""
        cdef Py_ssize_t d = self.k + 1
        self.models, self.own = other.models, other.own
        memcpy(self.inner, other.inner, self.k * sizeof(void*))
        memcpy(self.disabled, other.disabled, self.k * sizeof(int64_t))
        memcpy(self.numbers, other.numbers, 4 * sizeof(double))
        memcpy(self.mean, other.mean, d * sizeof(double))
        memcpy(self.cov, other.cov, d * d * sizeof(double))
        self.history, other.history = other.history, self.history
        self.weights, other.weights = other.weights, self.weights
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        cdef int e
        for e in range(self.k):
            if not self.disabled[e]:
                self.calls.forget(self.inner[e], slot)

    # ---------------------------------------------------------------- predicting

    cdef View* seen_by(self, int e, View* v) noexcept nogil:
        return as_columns(&self.views, v) if self.on_columns[e] else v

    cdef void ask(self, View* v) noexcept nogil:
        """What every expert and the stack say, and how much each counts; one that is disabled says the mean."""
        cdef int e
        cdef double z
        for e in range(self.k):
            self.answer_of[e] = 0.0
            if self.disabled[e]:
                continue
            z = (self.regress.predict(self.inner[e], self.seen_by(e, v)) - self.own.mean) / self.own.deviation
            self.answer_of[e] = within(z) if isfinite(z) else 0.0
        self.answer_of[self.k] = self.stacked()
        experts_weights(&self.weights, self.portion)

    cdef double stacked(self) noexcept nogil:
        """The stack's answer, no further outside of the experts' answers than a typical error."""
        cdef int e
        cdef double z = self.mean[self.k], low = self.answer_of[0], high = self.answer_of[0]
        for e in range(self.k):
            z += self.mean[e] * self.answer_of[e]
            low = min(low, self.answer_of[e])
            high = max(high, self.answer_of[e])
        low -= self.numbers[TYPICAL]
        high += self.numbers[TYPICAL]
        return low if z < low else high if z > high else z

    cdef double mixed(self) noexcept nogil:
        cdef int e
        cdef double z = 0.0
        for e in range(self.k + 1):
            z += self.portion[e] * self.answer_of[e]
        return z

    cdef double predict(self, View* v) noexcept nogil:
        if self.own.deviation <= 0.0:
            return self.own.mean
        self.ask(v)
        return self.answer()

    cdef double answer(self) noexcept nogil:
        """The mixture of what was asked, in the target's units."""
        return self.own.mean + self.own.deviation * self.mixed()

    # ---------------------------------------------------------------- learning

    cdef void learn_round(self, double z, double w) noexcept nogil:
        """Judge what was asked by a target of z deviations, and let the stack learn it."""
        cdef double rate = 1.0 / min(self.numbers[COUNT] + 1.0, MEMORY), error = fabs(z - self.mixed())
        self.numbers[TYPICAL] += rate * (error - self.numbers[TYPICAL])
        error = z - self.answer_of[self.k]
        self.numbers[STACK_SQUARE] += rate * (min(error * error, FAR) - self.numbers[STACK_SQUARE])
        self.numbers[COUNT] += 1.0
        self.judge(z, min(w, 1.0))
        self.learn_stack(z, w)

    cdef void judge(self, double z, double w) noexcept nogil:
        """Losses of experts and stack for a target of z deviations."""
        cdef int e
        cdef double error, unit = max(self.numbers[TYPICAL], SMALLEST)
        for e in range(self.k + 1):
            error = min(fabs(z - self.answer_of[e]) / (WORST * unit), 1.0)
            self.loss[e] = error if self.absolute else error * error
        experts_learn(&self.weights, self.loss, w)

    cdef void learn_stack(self, double z, double w) noexcept nogil:
        """One round of recursive least squares; the noise is that of the stack's errors so far."""
        cdef int i, j, d = self.k + 1
        cdef double last = self.answer_of[self.k], error = z, spread = 0.0, noise, bound, gain
        self.answer_of[self.k] = 1.0
        for i in range(d):
            error -= self.mean[i] * self.answer_of[i]
            self.work[i] = 0.0
            for j in range(d):
                self.work[i] += self.cov[i * d + j] * self.answer_of[j]
            spread += self.answer_of[i] * self.work[i]
        bound = HUBER * max(self.numbers[TYPICAL], SMALLEST)
        error = bound if error > bound else -bound if error < -bound else error
        noise = max(self.numbers[STACK_SQUARE], SMALLEST) / min(w, HEAVIEST)
        gain = 1.0 / (noise + spread)
        if spread >= 0.0 and isfinite(spread) and isfinite(error):
            for i in range(d):
                self.mean[i] += gain * error * self.work[i]
                for j in range(d):
                    self.cov[i * d + j] -= gain * self.work[i] * self.work[j]
                self.cov[i * d + i] += DRIFT
        self.answer_of[self.k] = last

    cdef void teach(self, View* v, double y, double w) noexcept nogil:
        """Let the experts learn; the number of features may disable some."""
        cdef int e
        for e in range(self.k):
            if self.max_features[e] and self.space.size > self.max_features[e]:
                self.disabled[e] = 1
            if not self.disabled[e]:
                self.regress.learn(self.inner[e], self.seen_by(e, v), y, w)

    # ---------------------------------------------------------------- looking inside

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Weighted mean of what the experts make of a slot; experts that see columns count nothing."""
        cdef int e
        cdef double total = 0.0
        experts_weights(&self.weights, self.portion)
        for e in range(self.k):
            if not self.on_columns[e] and not self.disabled[e]:
                total += (self.portion[e] + self.portion[self.k] / self.k) * self.calls.magnitude(self.inner[e], slot)
        return total

    cdef double counts_for(self, int e) noexcept nogil:
        """The factor of an expert's answer in the mixture, by itself and through the stack."""
        return self.portion[e] + self.portion[self.k] * self.mean[e]

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int e
        memset(out, 0, v.n * sizeof(double))
        if self.own.deviation <= 0.0:
            return
        self.ask(v)
        for e in range(self.k):
            if self.on_columns[e] or self.disabled[e]:
                continue
            memset(self.share, 0, v.n * sizeof(double))
            self.calls.contributions(self.inner[e], v, 0, self.share)
            if self.moderate(v.n):
                for i in range(v.n):
                    out[i] += self.counts_for(e) * self.share[i]

    cdef bint moderate(self, Py_ssize_t n) noexcept nogil:
        """Whether no contribution of an expert is further than its answers may be; the intercept takes the others."""
        cdef Py_ssize_t i
        for i in range(n):
            if not fabs(self.share[i]) <= FAR * self.own.deviation:
                return False
        return True

    cdef dict absent_contributions(self, View* v, int label):
        """What no present feature adds: presence, absent features, and what the stack and the means add by themselves."""
        cdef int e
        cdef Py_ssize_t i
        cdef double[::1] out
        cdef double rest = self.predict(v) - self.target.mean
        found = {}
        if self.own.deviation > 0.0:
            for e in range(self.k):
                if not self.on_columns[e] and not self.disabled[e]:
                    for key, part in (<Model> self.models[e]).absent_contributions(v, 0).items():
                        if abs(part) <= FAR * self.own.deviation:
                            found[key] = found.get(key, 0.0) + self.counts_for(e) * part
        out = np.zeros(max(1, v.n))
        self.contributions(v, 0, &out[0])
        rest -= sum(found.values()) + sum([out[i] for i in range(v.n)])
        found["(intercept)"] = found.get("(intercept)", 0.0) + rest
        return found

    def expert_weights(self):
        """Weight by expert, and of the stack."""
        experts_weights(&self.weights, self.portion)
        return {name: self.portion[e] for e, name in enumerate([*self.names, "stack"])}

    def stack_weights(self):
        """Factor of each expert's answer in the stack."""
        return {name: self.mean[e] for e, name in enumerate(self.names)}

    def weight_history(self):
        """Steps, and the weights after each of them."""
        return history_rows(&self.history)

    def typical_error(self):
        """Mean absolute error of about the last 200 answers, in the target's units; NaN before the first."""
        return self.numbers[TYPICAL] * self.own.deviation if self.numbers[COUNT] > 0.0 else float("nan")

    def notes(self):
        cdef int e
        found = []
        for e in range(self.k):
            if self.disabled[e]:
                found.append(f"{self.names[e]}: stands aside, there are more than {self.max_features[e]:,} features")
            else:
                found.extend(f"{self.names[e]}: {note}" for note in self.models[e].notes())
        return found

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef double[::1] held = np.zeros(experts_size(&self.weights))
        experts_dump(&self.weights, &held[0])
        arrays = {**RegressionModel.dump(self, size), "weights": np.asarray(held), "target": self.own.dump(),
                  **history_dump(&self.history)}
        for e in range(self.k):
            if not self.disabled[e]:
                arrays.update({f"{e}.{key}": array for key, array in self.models[e].dump(size).items()})
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef double[::1] held = checked_array(arrays, "weights", "f", (experts_size(&self.weights),))
        cdef int e
        own = {key: array for key, array in arrays.items() if not key.split(".")[0].isdigit()}
        self.arrays.fill(own, self.space.size if self.alone else -1, capacity, 1)
        experts_fill(&self.weights, &held[0])
        self.own.fill(arrays)
        history_fill(&self.history, arrays)
        for e in range(self.k):
            prefix = f"{e}."
            parts = {key[len(prefix):]: a for key, a in arrays.items() if key.startswith(prefix)}
            self.disabled[e] = self.max_features[e] > 0 and not parts    # what is disabled is not saved
            if not self.disabled[e]:
                self.models[e].fill(parts, capacity)
        self.grow(capacity)

    def nbytes(self):
        return self.arrays.nbytes() + sum(model.nbytes() for model in self.models)
