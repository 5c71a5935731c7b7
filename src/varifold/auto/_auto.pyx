"""The default learner's mathematics: experts of every kind, calibrated, stacked and mixed by their log loss.

Each expert's probabilities are sharpened or flattened by a temperature learned online. The answer is the exponentially
weighted mixture of the calibrated experts and of a stack over all of them, with a little of the weight shared out each
time: its summed log loss exceeds that of the best of them by at most ln(k + 4) / eta plus the price of sharing, at any
time. The mixture is given at a last temperature, and held back by a guard (see `_guard`) until it has shown itself better
than the class frequencies. A label's first instance teaches the experts, not what combines them: no model could have
known it.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax, softmax
from varifold._numeric.adwin cimport adwin_dump, adwin_fill
from varifold._numeric.hedge cimport (
    FIXED as FIXED_RATE, experts_dump, experts_fill, experts_free, experts_learn, experts_make, experts_size,
    experts_weights,
)
from varifold.auto._alarms cimport MOST_ALARMS, alarms_learn, alarms_start
from varifold.auto._categories cimport COLUMNS
from varifold.auto._experts cimport EARLY, NEVER, ExpertPool
from varifold.auto._guard cimport guard_holds, guard_learn
from varifold.auto._history cimport (
    history_dump, history_fill, history_free, history_make, history_row, history_rows, update_losses,
)
from varifold.auto._renewed cimport RenewedModel
from varifold.auto._stacking cimport (
    stack_answer, stack_biases, stack_doubt, stack_free, stack_lay_out, stack_learn, stack_make, stack_reserve,
    temperature_learn,
)
from varifold.auto._views cimport forget_last, keep_last, seen_last, without_new

from varifold._engine.state import checked_array, fixed, per_class, per_slot

cdef double RATE = 0.5             # of the exponential weights
cdef double SHARE = 0.01           # of the weight that is shared out each round
cdef double TRUST = 4.0            # weight of the stack at the start, as a multiple of an expert's
cdef double FLOOR = 1e-3           # mixed into every probability, uniformly
cdef double DRIFT = 1e-5           # added to the variances of temperatures and stack each round
cdef double BIAS_VARIANCE = 0.05   # of a bias of the stack at the start
cdef double TEMPERATURE_VARIANCE = 0.1    # at the start
cdef double LAGS = 0.05            # a costly expert whose log loss is this much above the mixture's is paused,
cdef double UNUSED = 0.1           # if it moves the stack's logits no more than this
cdef int64_t FIRST_EARLY = 200     # at the earliest after this many rounds,
cdef int64_t FIRST_LATE = 500      # or this many
cdef double RENEWED = 0.1          # part of the first variances by which the stack doubts when an expert was replaced


cdef class AutoModel(ExpertPool):
    """Experts and what combines them.

    `experts` are of the type `experts.Expert`. The stack starts with TRUST times the weight of an expert.
    """

    def __cinit__(self, experts, double threshold=0.5, double guard=1.5, double guard_full=50.0,
                  double final_variance=TEMPERATURE_VARIANCE):
        cdef int e, k
        cdef double[::1] weights = np.array([expert.stack_weight for expert in experts], dtype=np.float64)
        cdef double[::1] variances = np.array([expert.stack_variance for expert in experts], dtype=np.float64)
        self.add_experts(experts)
        k = self.k
        self.threshold = threshold
        self.guard.strength = guard
        self.guard.full = guard_full
        self.final.a = 1.0
        self.final.variance = self.final_variance = final_variance
        alarms_start(&self.alarms)
        self.arrays.declare("excess_loss", &self.excess_loss, fixed(k))
        self.arrays.declare("stack_use", &self.stack_use, fixed(k))
        self.arrays.declare("class_weight", &self.class_weight, per_class(low=0))
        self.arrays.scratch(&self.portion, fixed(k + 1))
        self.arrays.scratch(&self.loss, fixed(k + 1))
        self.arrays.scratch(&self.mixed, per_class())
        self.arrays.scratch(&self.mixed_logit, per_class())
        self.arrays.scratch(&self.sharpened, per_class())
        self.arrays.scratch(&self.given, per_class())
        self.arrays.scratch(&self.share, per_slot())
        if (history_make(&self.history, k + 1) < 0
                or stack_make(&self.stack, k, &weights[0], &variances[0], BIAS_VARIANCE) < 0
                or experts_make(&self.weights, k + 1, FIXED_RATE, RATE, SHARE) < 0):
            raise MemoryError
        for e in range(k):
            self.weights.held[e] = -log(TRUST)
            self.temperature[e].variance = TEMPERATURE_VARIANCE

    def __dealloc__(self):
        history_free(&self.history)
        stack_free(&self.stack)
        experts_free(&self.weights)

    # ---------------------------------------------------------------- memory

    cdef int reserve_class(self) except -1:
        ExpertPool.reserve_class(self)
        if stack_reserve(&self.stack, self.classes + 1) < 0:
            raise MemoryError
        return 0

    cdef int add_class(self) except -1:
        ExpertPool.add_class(self)
        stack_lay_out(&self.stack, self.classes)
        return 0

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef int e
        cdef double total = 0.0
        experts_weights(&self.weights, self.portion)
        for e in range(self.k):
            if self.disabled[e]:
                continue
            total += (self.portion[e] + self.portion[self.k] / self.k) * self.magnitude_in(e, slot)
        return total

    # ---------------------------------------------------------------- answering

    cdef void consult(self, View* v) noexcept nogil:
        """The experts' answers and the mixture's; what was found for the same instance a moment ago stands."""
        if seen_last(&self.views, v):
            return
        keep_last(&self.views, v)
        self.ask(v)
        self.combine(v.step)
        self.sharpen()
        self.apply_guard()

    cdef void combine(self, int64_t step) noexcept nogil:
        """The stack's answer and the mixture of all."""
        cdef int e, c, k = self.classes
        cdef double total = 0.0
        stack_answer(&self.stack, self.logit, self.calibrated + self.k * k)
        experts_weights(&self.weights, self.portion)
        memset(self.mixed, 0, k * sizeof(double))
        for e in range(self.k + 1):
            if e < self.k and self.idle(e, step):
                continue
            total += self.portion[e]
            for c in range(k):
                self.mixed[c] += self.portion[e] * self.calibrated[e * k + c]
        for c in range(k):
            self.mixed[c] = (1.0 - FLOOR) * self.mixed[c] / total + FLOOR / k

    cdef void sharpen(self) noexcept nogil:
        """Scale the mixture's logits by its own temperature."""
        cdef int c, k = self.classes
        cdef double mean = 0.0
        for c in range(k):
            self.mixed_logit[c] = log(self.mixed[c])
            mean += self.mixed_logit[c] / k
        for c in range(k):
            self.mixed_logit[c] -= mean
            self.sharpened[c] = self.final.a * self.mixed_logit[c]
        softmax(k, self.sharpened, self.sharpened)

    cdef void apply_guard(self) noexcept nogil:
        """Give the mixture's answer; the most frequent class where the guard says so."""
        cdef int best = argmax(self.classes, self.sharpened), common = argmax(self.classes, self.class_weight)
        cdef double both = self.sharpened[best] + self.sharpened[common]
        memcpy(self.given, self.sharpened, self.classes * sizeof(double))
        if guard_holds(&self.guard, self.classes, self.sharpened, self.class_weight):
            self.given[common] = 0.51 * both
            self.given[best] = 0.49 * both

    cdef double handicap(self, int c) noexcept nogil:
        """What a label's log-probability is held against: of two labels the rarer answers from the threshold on."""
        if self.classes != 2:
            return 0.0
        return log(self.threshold if (c == 1) == (self.class_weight[1] <= self.class_weight[0]) else 1.0 - self.threshold)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.consult(v)
        for c in range(self.classes):
            out[c] = log(self.given[c]) - self.handicap(c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = scores[c] + self.handicap(c)
        softmax(self.classes, out, out)

    # ---------------------------------------------------------------- learning

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int e
        if self.classes > 1 and self.class_weight[y] > 0.0:
            self.learn_combination(v, y, w)
        self.class_weight[y] += w
        forget_last(&self.views)
        self.teach(v, y, w)
        for e in range(self.k):
            if self.renewed(e, v.step):
                self.temperature[e].variance = TEMPERATURE_VARIANCE
                stack_doubt(&self.stack, RENEWED)
        if self.classes > 1:
            for e in range(self.k):
                if self.pausing[e] != NEVER and v.step >= (FIRST_EARLY if self.pausing[e] == EARLY else FIRST_LATE):
                    self.paused[e] = self.excess_loss[e] > LAGS and self.stack_use[e] < UNUSED

    cdef void learn_combination(self, View* v, int y, double w) noexcept nogil:
        """Learn how to combine the experts, from what they answer before they learn the instance."""
        cdef int e, k = self.classes
        self.consult(without_new(&self.views, v))
        self.share_answers(v.step)
        self.record(v.step, y)
        for e in range(self.k + 1):
            if e < self.k and self.idle(e, v.step):
                self.loss[e] = max(self.excess_loss[e], 0.0) - log(self.mixed[y])
            else:
                self.loss[e] = -log((1.0 - FLOOR) * self.calibrated[e * k + y] + FLOOR / k)
                if e < self.k:
                    self.excess_loss[e] += (self.loss[e] + log(self.mixed[y]) - self.excess_loss[e]) / 50.0
        stack_learn(&self.stack, self.logit, self.calibrated + self.k * k, y, w, DRIFT)
        for e in range(self.k):
            if not self.idle(e, v.step):
                self.measure_use(e)
                temperature_learn(&self.temperature[e], TEMPERATURE_VARIANCE, k, self.logit + e * k,
                                  self.calibrated + e * k, y, w, DRIFT)
        experts_learn(&self.weights, self.loss, w)
        guard_learn(&self.guard, k, self.sharpened, self.given, self.class_weight, y, w)
        temperature_learn(&self.final, self.final_variance, k, self.mixed_logit, self.sharpened, y, w, DRIFT)

    cdef void measure_use(self, int e) noexcept nogil:
        """Update how much the stack uses an expert: how far its weighted logits move from their usual values."""
        cdef int c, k = self.classes
        cdef double moved, reach = 0.0
        for c in range(k):
            moved = self.logit[e * k + c] - self.usual[c * self.k + e]
            reach += moved * moved
            self.usual[c * self.k + e] += moved / 50.0
        self.stack_use[e] += (fabs(self.stack.mean[e]) * sqrt(reach / k) - self.stack_use[e]) / 50.0

    cdef void record(self, int64_t step, int y) noexcept nogil:
        """Update running losses; record the expert weights periodically."""
        cdef int e
        cdef double* row
        cdef bint wrong = argmax(self.classes, self.given) != y
        update_losses(&self.history, step, wrong, -log(self.given[y]))
        alarms_learn(&self.alarms, step, wrong)
        row = history_row(&self.history, step)
        if row != NULL:
            self.weights_in_use(row)
            for e in range(self.k + 1):
                row[e] = <float> row[e]    # half the room in files

    cdef void weights_in_use(self, double* out) noexcept nogil:
        """The weights of experts and stack, of which those that stand aside have none."""
        cdef int e
        cdef double total = 0.0
        experts_weights(&self.weights, out)
        for e in range(self.k + 1):
            out[e] *= e == self.k or not self.stands_aside(e)
            total += out[e]
        for e in range(self.k + 1):
            out[e] /= total

    # ---------------------------------------------------------------- looking inside

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Experts' contributions, each at its part in the answer; what is not additive goes to the intercept."""
        cdef int e
        cdef Py_ssize_t i
        cdef double part, total = 0.0
        cdef View* seen
        memset(out, 0, v.n * sizeof(double))
        self.consult(v)
        self.rewrite(v)    # consult() may have found the answer without
        for e in range(self.k):
            if self.sees[e] == COLUMNS or self.idle(e, v.step):
                continue
            part = self.portion[e] * self.temperature[e].a + self.portion[self.k] * self.stack.mean[e]
            seen = self.seen_by(e, v)
            self.calls.contributions(self.inner[e], seen, label, self.share)
            for i in range(seen.n):
                out[self.origin(e, i)] += part * self.share[i]
        for i in range(1, v.n):
            total += out[i]
        out[0] = log(self.given[label]) - self.handicap(label) - total

    def expert_weights(self):
        """Weight by expert now, the stack last; 0 for an expert that stands aside."""
        cdef double[::1] out = np.zeros(self.k + 1)
        self.weights_in_use(&out[0])
        return dict(zip([*self.names, "stack"], np.asarray(out).tolist()))

    def weight_history(self):
        """(steps, weights): the experts' weights over the stream."""
        return history_rows(&self.history)

    def recent(self):
        """Error and log loss, averaged over about 50 and about 1,000 rounds."""
        return {"error": self.history.losses[0], "error_long": self.history.losses[1],
                "log_loss": self.history.losses[2], "log_loss_long": self.history.losses[3]}

    def alarm_records(self):
        """The latest rises of the error as dicts with the fields of `Alarm`, the oldest first."""
        cdef int64_t i, held = min(self.alarms.count, <int64_t> MOST_ALARMS)
        return [self.alarms.alarm[i % MOST_ALARMS] for i in range(self.alarms.count - held, self.alarms.count)]

    def change_records(self):
        """By expert that has copies of itself: the latest times that one of them took over, as dicts."""
        return {name: model.change_records() for name, model in zip(self.names, self.models)
                if isinstance(model, RenewedModel)}

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, d = self.k + self.stack.biases
        cdef double[::1] held = np.zeros(experts_size(&self.weights))
        experts_dump(&self.weights, &held[0])
        return {
            **ExpertPool.dump(self, size),
            **self.dump_alarms(),
            "weights": np.asarray(held),
            "final_temperature": np.array([self.final.a, self.final.variance]),
            "guard": np.array([self.guard.right_lead, self.guard.loss_lead, self.guard.behind]),
            "stack.mean": np.array([self.stack.mean[i] for i in range(d)]),
            "stack.covariance": np.array([self.stack.cov[i] for i in range(d * d)]),
            **history_dump(&self.history),
            "recent_losses": np.array([self.history.losses[i] for i in range(4)]),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        cdef Py_ssize_t i
        cdef double[::1] held = checked_array(arrays, "weights", "f", (None,))
        if held.shape[0] != experts_size(&self.weights):
            raise ValueError("the arrays belong to other experts")
        ExpertPool.fill(self, arrays, capacity)
        experts_fill(&self.weights, &held[0])
        self.fill_stack(arrays)
        history_fill(&self.history, arrays)
        for i, value in enumerate(checked_array(arrays, "recent_losses", "f", (4,)).tolist()):
            self.history.losses[i] = value
        self.fill_alarms(arrays)
        leads = checked_array(arrays, "guard", "f", (3,)).tolist()
        self.guard.right_lead, self.guard.loss_lead, self.guard.behind = leads
        self.final.a, self.final.variance = checked_array(arrays, "final_temperature", "f", (2,)).tolist()

    def fill_stack(self, dict arrays):
        """Restore the weights of the stack and their covariance."""
        cdef Py_ssize_t i, d = self.k + stack_biases(self.classes)
        mean = checked_array(arrays, "stack.mean", "f", (d,)).tolist()
        cov = checked_array(arrays, "stack.covariance", "f", (d * d,)).tolist()
        if stack_reserve(&self.stack, self.classes) < 0:
            raise MemoryError
        stack_lay_out(&self.stack, self.classes)
        for i in range(d):
            self.stack.mean[i] = mean[i]
        for i in range(d * d):
            self.stack.cov[i] = cov[i]

    def dump_alarms(self):
        """The detector and the rises that it found."""
        found = self.alarm_records()
        return {"alarms.count": np.array([self.alarms.count], dtype=np.int64),
                "alarms.errors": adwin_dump(&self.alarms.errors),
                "alarms.steps": np.array([[a["step"], a["since"]] for a in found], dtype=np.int64).reshape(-1, 2),
                "alarms.rises": np.array([[a["before"], a["error"]] for a in found]).reshape(-1, 2)}

    def fill_alarms(self, dict arrays):
        """Take what dump_alarms() gave."""
        cdef int64_t i, held
        self.alarms.count = checked_array(arrays, "alarms.count", "i", (1,), 0, 1 << 53)[0]
        held = min(self.alarms.count, <int64_t> MOST_ALARMS)
        steps = checked_array(arrays, "alarms.steps", "i", (held, 2), 0, 1 << 53).tolist()
        rises = checked_array(arrays, "alarms.rises", "f", (held, 2), 0, 1).tolist()
        adwin_fill(&self.alarms.errors, checked_array(arrays, "alarms.errors", "f", (None,)))
        for i, ((step, since), (before, error)) in enumerate(zip(steps, rises), self.alarms.count - held):
            self.alarms.alarm[i % MOST_ALARMS] = {"step": step, "since": since, "before": before, "error": error}
