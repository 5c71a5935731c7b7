"""Mixture of `AutoClassifier`: experts, calibrated, stacked, and mixed by their log loss.

For each instance

1. every expert predicts probabilities; their logits are multiplied by the expert's *temperature* (`_stacking`);
2. the *stack* adds up all logits, each expert with its own weight (`_stacking`);
3. the *mixture* is the mean of the experts' and the stack's probabilities under exponential weights (log loss, rate
   RATE, fixed share). There are two sets of weights, of which SHARE and SLOW_SHARE are shared out, and weights of the
   two mixtures (SLOW_SHARE): over T instances the log loss exceeds that of the best of k experts and the stack by at
   most (ln 2 + ln(k + 4) + 2 T ln(1 / (1 - SLOW_SHARE))) / RATE. A label learned once gets the probability that the
   experts give it that count labels, at temperature 1: the margin of a new label is near zero everywhere, and
   temperatures and stack have learned nothing about it. Where labels come in runs this is wrong: the odds of both
   treatments are learned from their probabilities, and fade with every change of the label;
4. a *final temperature* calibrates the mixture;
5. the *guard* (`_guard`) predicts the most frequent label until the mixture has proved better.

Learning updates 1 to 5 with what they predicted, then the experts. The first instance of a label updates the experts
only: no model could have predicted it. Expensive experts that are of no use are paused.
"""

import numpy as np

from libc.math cimport exp, fabs, log, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport NEW_LABEL, Model
from varifold._engine.targets.decision cimport MOST_PROBABLE, Decision
from varifold._engine.view cimport View
from varifold._numeric.activation cimport argmax, softmax
from varifold._numeric.hedge cimport FIXED as FIXED_RATE, Experts, experts_learn, experts_weights
from varifold._numeric.kernels cimport add_multiple
from varifold.auto._categories cimport CategoriesModel
from varifold.auto._error_watch cimport ErrorWatch
from varifold.auto._expert_set cimport BOUNDED, COLUMNS, ExpertSet
from varifold.auto._guard cimport GUARD_NUMBERS, Guard, guard_holds, guard_learn
from varifold.auto._lateness cimport LATENESS_NUMBERS, Lateness, lateness_learn, lateness_ratio
from varifold.auto._restarting cimport RestartingModel, restarted_at, set_prediction
from varifold.auto._stacking cimport (
    TEMPERATURE_NUMBERS, Stack, Temperature, stack_biases, stack_free, stack_lay_out, stack_learn, stack_make,
    stack_predict, stack_reserve, stack_widen, temperature_learn,
)
from varifold.auto._views cimport forget_last, keep_last, seen_last, without_new

from varifold._engine.state import checked_array, fixed, per_class, per_slot
from varifold.auto._expert_set import SEES

PAUSING = ("never", "late", "early")    # the names of Pausing

ctypedef void (*prediction_call)(void*, int) noexcept nogil
ctypedef int64_t (*restarted_call)(void*) noexcept nogil

cdef double RATE = 0.5                 # of the exponential weights: losses are log losses
cdef double SHARE = 0.01               # part of all weight that is redistributed evenly after each instance,
cdef double SLOW_SHARE = 0.001         # of the slow weights, and of the weights of both paces
cdef double TRUST = 4.0                # weight of the stack at the start, as a multiple of an expert's
cdef double FLOOR = 1e-3               # uniform part of every mixed probability
cdef double DRIFT = 1e-5               # added to the variances of stack and final temperature per instance,
cdef double TEMPERATURE_DRIFT = 1e-4   # and of the experts' temperatures: the right one changes as an expert learns
cdef double BIAS_VARIANCE = 0.05       # of a bias of the stack at the start
cdef double TEMPERATURE_VARIANCE = 0.1 # at the start
cdef double RESTARTED = 0.1            # part of the first variances added to the stack's when an expert restarts
cdef double LOGIT_RANGE = 16.0         # of an expert: no logit is further below the largest
cdef double MEMORY = 50.0              # instances over which statistics of experts are averaged
cdef double MOST_ODDS = 5.0            # bound of `new_odds`, which starts at its negative

cdef int64_t PAUSE_INTERVAL = 8        # a paused expert is evaluated on every n-th instance
cdef int64_t FIRST_EARLY = 200         # instances before an EARLY expert may be paused,
cdef int64_t FIRST_LATE = 500          # and a LATE one
cdef double EXCESS = 0.05              # paused is an expert with this much more log loss than the mixture
cdef double UNUSED = 0.1               # that moves the stack's logits by less than this,
cdef double LITTLE = 0.9               # but none while the mixture's log loss exceeds this part of the labels' entropy,
cdef int64_t LITTLE_UNTIL = 1000       # for this many instances
cdef int MANY_CLASSES = 256            # experts that may be paused are disabled beyond: some hold a matrix per class
cdef Py_ssize_t MOST_CELLS = 65_536    # numbers in all matrices of an expert, beyond which it is disabled


# Whether, and from when on, an expert may be paused.
cdef enum Pausing:
    NEVER
    LATE
    EARLY


cdef enum:
    RUNNING_NUMBERS = 3    # as saved

cdef struct RunningMean:
    double recent          # over about 50,
    double usual           # and about 1,000 values
    double count


cdef void running_learn(RunningMean* m, double value) noexcept nogil:
    m.count += 1.0
    m.recent += (value - m.recent) / min(m.count, 50.0)
    m.usual += (value - m.usual) / min(m.count, 1000.0)


cdef void start_slowly(Experts* weights, int k) noexcept nogil:
    """Set the rate and the share of slow weights of k predictions."""
    weights.k = k
    weights.rate = FIXED_RATE
    weights.eta = RATE
    weights.share = SLOW_SHARE


cdef class ClassificationMixture(Model):
    """Experts of a table (see `experts.Expert`) and all that combines them.

    `guard` is the strength of the guard (0: none), `guard_full` the number of instances after which all of it applies,
    `final_variance` the first variance of the final temperature (0: there is none).
    """

    cdef ExpertSet experts
    cdef CategoriesModel categories    # one of the models, or None
    cdef int categories_at             # its expert, -1 for none
    cdef int64_t* pausing              # [expert]: one of Pausing
    cdef int64_t* matrix_side          # [expert]: rows of the matrices that it holds per class; 0: none
    cdef int64_t* restarts             # [expert]: is a RestartingModel
    cdef int64_t* unlabelled           # [expert]: learns instances without a label
    cdef int64_t* counts_labels        # [expert]: its probabilities contain the shares of the labels
    cdef int64_t* paused               # [expert]: is evaluated on every PAUSE_INTERVAL-th instance
    cdef double* excess_loss           # [expert]: running mean of its log loss less the mixture's
    cdef double* stack_use             # [expert]: running mean of how far it moves the stack's logits
    cdef double* usual_logits          # [class][expert]: running means, used in place of a paused expert's logits
    cdef Experts slow                  # weights like those of `experts`, with less weight shared
    cdef Experts pace                  # weights of the mixtures with fast and with slow weights
    cdef Experts late                  # weights of the mixture and of the labels' shares, once labels come late
    cdef Temperature* temperature      # [expert]
    cdef Stack stack
    cdef Temperature* final            # of the mixture
    cdef double final_variance         # of its temperature at the start, never exceeded
    cdef Guard* guard
    cdef Lateness* lateness
    cdef double* mean_error            # [class]
    cdef double guard_strength, guard_full
    cdef double threshold
    cdef double* class_weight          # [class]: weight learned
    cdef int64_t* repeated             # [class]: more than one instance was learned
    cdef double* new_odds              # log-odds of `as_known` against `as_counted`
    cdef int64_t* last_label           # class of the last instance learned, -1 at the start
    cdef public Decision decision      # of the target, which chooses the label; None: the most probable one
    cdef RunningMean* recent_error     # of the labels that are predicted
    cdef RunningMean* recent_loss      # their log loss
    cdef ErrorWatch watch

    # of the instance at hand
    cdef double* score                 # [class]: of one expert
    cdef double* logit                 # [expert][class]
    cdef int64_t* idle                 # [expert]: took no part in the prediction
    cdef int recalled                  # classes of the memo that was read, -1 for none
    cdef double lag                    # labels learned since it was written
    cdef double* calibrated            # [expert and stack][class]: probabilities
    cdef int64_t* predicted            # [expert]: class with the largest score, of those that restart
    cdef double* experts_mixed         # [class]: probabilities of the mixture of experts and stack,
    cdef double* mixed                 # [class]: with the labels' shares, if labels come late,
    cdef double* mixed_logit           # [class]: their logits,
    cdef double* sharpened             # [class]: the mixture at its temperature,
    cdef double* output                # [class]: and after the guard
    cdef double* as_known              # [class]: as `experts_mixed`, labels learned once like the others,
    cdef double* as_counted            # [class]: and by the experts that count labels
    cdef bint judges_new               # whether the two differ
    cdef double* issued_stack          # [class]: probabilities of the stack in the memo that was read,
    cdef double* issued_mixture        # [class]: and of the mixture of experts and stack
    cdef double* loss                  # [expert and stack]
    cdef double* fast_portion          # [expert and stack]: the fast weights,
    cdef double* slow_portion          # the slow ones
    cdef double* share                 # [slot]: contributions of one expert

    def __cinit__(self, experts, double threshold=0.5, double guard=1.5, double guard_full=50.0,
                  double final_variance=TEMPERATURE_VARIANCE, bint learn_unlabelled=False):
        self.experts = ExpertSet(experts, RATE, SHARE, TRUST, 1)
        self.components = self.experts.components
        self.watch = ErrorWatch()
        self.sees_empty = True
        self.wants_columns = True
        self.prepares = any(model.prepares for model in self.experts.models)
        self.learns_unlabelled = learn_unlabelled
        self.threshold = threshold
        self.guard_strength = guard
        self.guard_full = guard_full
        self.final_variance = final_variance
        self.recalled = -1
        self.declare_state(self.experts.count)
        self.declare_scratch(self.experts.count)
        self.start_combination(experts)
        self.describe_experts(experts)

    cdef int declare_state(self, int k) except -1:
        """Declare what is saved."""
        self.arrays.declare("paused", &self.paused, fixed(k, low=0, high=1))
        self.arrays.declare("excess_loss", &self.excess_loss, fixed(k))
        self.arrays.declare("stack_use", &self.stack_use, fixed(k))
        self.arrays.declare("usual_logits", &self.usual_logits, per_class(width=k))
        self.arrays.declare("slow_weights", &self.slow.held, fixed(k + 1, high=0))
        self.arrays.declare("pace", &self.pace.held, fixed(2, high=0))
        self.arrays.declare("late", &self.late.held, fixed(2, high=0))
        self.arrays.declare("temperature", <double**> &self.temperature, fixed(k, width=TEMPERATURE_NUMBERS))
        self.arrays.declare("final_temperature", <double**> &self.final, fixed(TEMPERATURE_NUMBERS))
        self.arrays.declare("guard", <double**> &self.guard, fixed(GUARD_NUMBERS))
        self.arrays.declare("lateness", <double**> &self.lateness, fixed(LATENESS_NUMBERS, low=0))
        self.arrays.declare("lateness.mean_error", &self.mean_error, per_class(low=-1, high=1))
        self.arrays.declare("class_weight", &self.class_weight, per_class(low=0))
        self.arrays.declare("repeated", &self.repeated, per_class(low=0, high=1))
        self.arrays.declare("new_odds", &self.new_odds, fixed(1, low=-MOST_ODDS, high=MOST_ODDS))
        self.arrays.declare("last_label", &self.last_label, fixed(1, low=-1))
        self.arrays.declare("recent_error", <double**> &self.recent_error, fixed(RUNNING_NUMBERS, low=0))
        self.arrays.declare("recent_loss", <double**> &self.recent_loss, fixed(RUNNING_NUMBERS, low=0))
        return 0

    cdef int declare_scratch(self, int k) except -1:
        """Declare the fields of the table of experts, and what is computed for the instance at hand."""
        self.arrays.scratch(&self.pausing, fixed(k))
        self.arrays.scratch(&self.matrix_side, fixed(k))
        self.arrays.scratch(&self.restarts, fixed(k))
        self.arrays.scratch(&self.unlabelled, fixed(k))
        self.arrays.scratch(&self.counts_labels, fixed(k))
        self.arrays.scratch(&self.idle, fixed(k))
        self.arrays.scratch(&self.predicted, fixed(k))
        self.arrays.scratch(&self.loss, fixed(k + 1))
        self.arrays.scratch(&self.fast_portion, fixed(k + 1))
        self.arrays.scratch(&self.slow_portion, fixed(k + 1))
        self.arrays.scratch(&self.score, per_class())
        self.arrays.scratch(&self.experts_mixed, per_class())
        self.arrays.scratch(&self.mixed, per_class())
        self.arrays.scratch(&self.as_known, per_class())
        self.arrays.scratch(&self.as_counted, per_class())
        self.arrays.scratch(&self.issued_stack, per_class())
        self.arrays.scratch(&self.issued_mixture, per_class())
        self.arrays.scratch(&self.mixed_logit, per_class())
        self.arrays.scratch(&self.sharpened, per_class())
        self.arrays.scratch(&self.output, per_class())
        self.arrays.scratch(&self.logit, per_class(width=k))
        self.arrays.scratch(&self.calibrated, per_class(width=k + 1))
        self.arrays.scratch(&self.share, per_slot())
        return 0

    cdef int start_combination(self, experts) except -1:
        """Set the first weights, temperatures and variances."""
        cdef int e, k = self.experts.count
        cdef double[::1] weights = np.array([expert.stack_weight for expert in experts], dtype=np.float64)
        cdef double[::1] variances = np.array([expert.stack_variance for expert in experts], dtype=np.float64)
        if stack_make(&self.stack, k, &weights[0], &variances[0], BIAS_VARIANCE) < 0:
            raise MemoryError
        start_slowly(&self.slow, k + 1)
        start_slowly(&self.pace, 2)
        start_slowly(&self.late, 2)
        for e in range(k):
            self.slow.held[e] = -log(TRUST)
            self.temperature[e].factor = experts[e].temperature
            self.temperature[e].variance = TEMPERATURE_VARIANCE
        self.final.factor = 1.0
        self.final.variance = self.final_variance
        self.new_odds[0] = -MOST_ODDS
        self.last_label[0] = -1
        return 0

    cdef int describe_experts(self, experts) except -1:
        """Copy the fields of each expert's entry in the table, and note its model."""
        cdef int e
        self.categories_at = -1
        for e, (expert, model) in enumerate(zip(experts, self.experts.models)):
            self.pausing[e] = PAUSING.index(expert.pausing)
            self.matrix_side[e] = expert.matrix_side or 0
            self.counts_labels[e] = expert.counts_labels
            self.restarts[e] = isinstance(model, RestartingModel)
            self.unlabelled[e] = self.learns_unlabelled and model.learns_unlabelled
            if isinstance(model, CategoriesModel):
                self.categories = model
                self.categories_at = e
        return 0

    def __dealloc__(self):
        stack_free(&self.stack)

    # ---------------------------------------------------------------- memory

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.experts.reserve_views(capacity)
        forget_last(&self.experts.views)
        return Model.grow(self, capacity)

    cdef int reserve_class(self) except -1:
        """Reserve memory for one more class, but not in experts that it disables."""
        cdef int e
        for e in range(self.experts.count):
            if not self.experts.disabled[e] and not self.exceeds_classes(e):
                (<Model> self.experts.models[e]).reserve_class()
        if stack_reserve(&self.stack, self.classes + 1) < 0:
            raise MemoryError
        self.arrays.reserve_classes(self.classes + 1)
        return 0

    cdef int add_class(self) except -1:
        cdef int e
        for e in range(self.experts.count):
            if self.exceeds_classes(e):
                self.experts.disabled[e] = 1
        forget_last(&self.experts.views)
        Model.add_class(self)
        stack_lay_out(&self.stack, self.classes)
        return 0

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        cdef int e
        if self.has_wide_columns():
            n = self.categories.slots_to_prepare(slots, n)
            slots = self.categories.prepared
        for e in range(self.experts.count):
            if not self.experts.disabled[e] and not (y == NEW_LABEL and self.exceeds_classes(e)):
                self.components.prepare_component(e, slots, n, n_new, y)
        return 0

    cdef void forget(self, int32_t slot) noexcept nogil:
        Model.forget(self, slot)
        forget_last(&self.experts.views)

    # ---------------------------------------------------------------- limits and pauses

    cdef bint exceeds_classes(self, int e) noexcept nogil:
        """Return whether one more class disables the expert."""
        return ((self.pausing[e] != NEVER and self.classes >= MANY_CLASSES)
                or self.exceeds_matrices(e, self.classes + 1))

    cdef bint exceeds_matrices(self, int e, Py_ssize_t classes) noexcept nogil:
        """Return whether the expert's matrices, one per class, would hold too many numbers."""
        cdef Py_ssize_t side = min(self.space.size - 1, self.matrix_side[e])
        return classes * side * side > MOST_CELLS

    cdef Py_ssize_t columns(self) noexcept nogil:
        """Count the columns: levels of a string column count once."""
        return self.space.size - self.space.indicators

    cdef bint takes_no_part(self, int e) noexcept nogil:
        """Return whether the expert is disabled, or is the one for wide columns and there are none."""
        return self.experts.disabled[e] or (e == self.categories_at and self.categories.wide_columns == 0)

    cdef bint is_idle(self, int e, int64_t step) noexcept nogil:
        """Return whether the expert is not used, or is paused at this step."""
        return self.takes_no_part(e) or (self.paused[e] and step % PAUSE_INTERVAL != 0)

    cdef void update_pauses(self, int64_t step) noexcept nogil:
        """Pause expensive experts that are of no use, and resume those that have become useful."""
        cdef int e
        cdef bint wait = step < LITTLE_UNTIL and self.explains_little()
        for e in range(self.experts.count):
            if self.pausing[e] != NEVER and step >= (FIRST_EARLY if self.pausing[e] == EARLY else FIRST_LATE):
                self.paused[e] = self.excess_loss[e] > EXCESS and self.stack_use[e] < UNUSED and not wait

    cdef bint explains_little(self) noexcept nogil:
        """Return whether the mixture is hardly better than the labels' shares: what is of no use yet may be needed."""
        cdef int c
        cdef double share, entropy = 0.0, total = self.total_weight()
        for c in range(self.classes):
            share = self.base_rate(c, total)
            entropy -= share * log(share)
        return self.recent_loss.usual > LITTLE * entropy

    # ---------------------------------------------------------------- what an expert sees

    cdef bint has_wide_columns(self) noexcept nogil:
        return self.categories_at >= 0 and self.categories.wide_columns > 0

    cdef void bound_columns(self, View* v) noexcept nogil:
        """Write the instance as BOUNDED experts see it."""
        if self.has_wide_columns():
            self.categories.bound(v)

    cdef View* seen_by(self, int e, View* v) noexcept nogil:
        """Return the instance as the expert sees it; bound_columns() was called for it."""
        if self.experts.sees[e] == COLUMNS:
            return self.experts.columns_of(v)
        return &self.categories.bounded if self.experts.sees[e] == BOUNDED and self.has_wide_columns() else v

    cdef Py_ssize_t origin(self, int e, Py_ssize_t i) noexcept nogil:
        """Return the position, in the instance, of the feature that the expert sees at position i."""
        return self.categories.origin[i] if self.experts.sees[e] == BOUNDED and self.has_wide_columns() else i

    cdef double magnitude_in(self, int e, int32_t slot) noexcept nogil:
        """Return the magnitude of a slot in an expert, through the slot and the value by which the expert sees it."""
        if self.experts.sees[e] != BOUNDED or not self.has_wide_columns():
            return self.components.magnitude(e, slot)
        return self.categories.value_of(slot) * self.components.magnitude(e, self.categories.seen_as(slot))

    # ---------------------------------------------------------------- predicting

    cdef void predict_all(self, View* v) noexcept nogil:
        """Predict with experts, stack and mixture; reuse the predictions for the same instance."""
        if seen_last(&self.experts.views, v):
            return
        keep_last(&self.experts.views, v)
        self.predict_experts(v)
        self.combine()

    cdef void combine(self) noexcept nogil:
        """Predict with stack, mixture and guard from the experts' logits."""
        self.mix()
        self.sharpen()
        self.apply_guard()

    cdef void predict_experts(self, View* v) noexcept nogil:
        """Compute logits and calibrated probabilities of each expert; an idle one repeats its usual logits."""
        cdef int e, c, k = self.classes
        cdef double mean, least
        cdef double* logit
        cdef double* p
        self.bound_columns(v)
        for e in range(self.experts.count):
            logit = self.logit + e * k
            p = self.calibrated + e * k
            self.idle[e] = self.is_idle(e, v.step)
            if self.idle[e]:
                for c in range(k):
                    logit[c] = 0.0 if self.takes_no_part(e) else self.usual_logits[c * self.experts.count + e]
                continue
            self.components.scores(e, self.seen_by(e, v), self.score)
            if self.restarts[e]:
                self.predicted[e] = argmax(k, self.score)
            self.components.proba(e, self.score, p)
            least = exp(-LOGIT_RANGE) * p[argmax(k, p)]
            if not least > 0.0:    # also where all are NaN
                least = exp(-LOGIT_RANGE)
            mean = 0.0
            for c in range(k):
                logit[c] = log(p[c] if p[c] > least else least)
                mean += logit[c] / k
            for c in range(k):
                logit[c] -= mean
            self.calibrate(e)

    cdef void calibrate(self, int e) noexcept nogil:
        """Compute an expert's probabilities from its logits."""
        cdef int c, k = self.classes
        cdef double* p = self.calibrated + e * k
        for c in range(k):
            p[c] = self.temperature[e].factor * self.logit[e * k + c]
        softmax(k, p, p)

    cdef void mix(self) noexcept nogil:
        """Predict with the stack, and mix it with the experts that are not idle."""
        cdef int e, c, k = self.classes, stack = self.experts.count
        cdef double total = 0.0
        stack_predict(&self.stack, self.logit, self.calibrated + stack * k)
        self.find_portions()
        memset(self.mixed, 0, k * sizeof(double))
        for e in range(stack + 1):
            if e < stack and self.idle[e]:
                continue
            total += self.experts.portion[e]
            for c in range(k):
                self.mixed[c] += self.experts.portion[e] * self.calibrated[e * k + c]
        for c in range(k):
            self.mixed[c] = (1.0 - FLOOR) * self.mixed[c] / total + FLOOR / k
        self.mix_new_labels()
        memcpy(self.experts_mixed, self.mixed, k * sizeof(double))
        if self.lateness.count > 0.0:
            self.mix_base_rate()

    cdef void mix_new_labels(self) noexcept nogil:
        """Let the experts that count labels predict the labels learned once, if others were learned more often.

        The mixture without that keeps a part, by how well both have predicted so far.
        """
        cdef int c, e, k = self.classes
        cdef double new = 0.0, known = 0.0, total = 0.0, weight
        self.judges_new = False
        for c in range(k):
            known += self.mixed[c] if self.repeated[c] else 0.0
            new += not self.repeated[c]
        if new == 0.0 or known == 0.0:
            return
        memset(self.as_counted, 0, k * sizeof(double))
        for e in range(self.experts.count):
            if self.counts_labels[e] and not self.idle[e]:
                softmax(k, self.logit + e * k, self.score)
                total += self.experts.portion[e]
                add_multiple(k, self.as_counted, self.experts.portion[e], self.score)
        if total == 0.0:
            return
        self.judges_new = True
        memcpy(self.as_known, self.mixed, k * sizeof(double))
        new = 0.0
        for c in range(k):
            if not self.repeated[c]:
                self.as_counted[c] = (1.0 - FLOOR) * self.as_counted[c] / total + FLOOR / k
                new += self.as_counted[c]
        weight = 1.0 / (1.0 + exp(-self.new_odds[0]))
        for c in range(k):
            if self.repeated[c]:
                self.as_counted[c] = self.as_known[c] * (1.0 - new) / known
            self.mixed[c] = weight * self.as_known[c] + (1.0 - weight) * self.as_counted[c]

    cdef void mix_base_rate(self) noexcept nogil:
        """Mix the shares of the labels in: where labels come late, all experts may be worse than that."""
        cdef int c
        cdef double total = self.total_weight()
        cdef double weight[2]
        experts_weights(&self.late, weight)
        for c in range(self.classes):
            self.mixed[c] = weight[0] * self.mixed[c] + weight[1] * self.base_rate(c, total)

    cdef double total_weight(self) noexcept nogil:
        """Return the weight of all labels learned."""
        cdef int c
        cdef double total = 0.0
        for c in range(self.classes):
            total += self.class_weight[c]
        return total

    cdef double base_rate(self, int c, double total) noexcept nogil:
        """Return the share of a label, with the uniform part of every mixed probability."""
        return (1.0 - FLOOR) * self.class_weight[c] / total + FLOOR / self.classes

    cdef void find_portions(self) noexcept nogil:
        """Mix the fast and the slow weights of experts and stack."""
        cdef int e
        cdef double pace[2]
        experts_weights(&self.experts.weights, self.fast_portion)
        experts_weights(&self.slow, self.slow_portion)
        experts_weights(&self.pace, pace)
        for e in range(self.experts.count + 1):
            self.experts.portion[e] = pace[0] * self.fast_portion[e] + pace[1] * self.slow_portion[e]

    cdef double mixture_loss(self, const double* portion, int y) noexcept nogil:
        """Return the log loss of the experts that are not idle and the stack, mixed by these weights."""
        cdef int e, k = self.classes, stack = self.experts.count
        cdef double right = 0.0, total = 0.0
        for e in range(stack + 1):
            if e == stack or not self.idle[e]:
                total += portion[e]
                right += portion[e] * self.calibrated[e * k + y]
        return -log((1.0 - FLOOR) * right / total + FLOOR / k)

    cdef void sharpen(self) noexcept nogil:
        """Multiply the mixture's logits by the final temperature."""
        cdef int c, k = self.classes
        cdef double mean = 0.0
        for c in range(k):
            self.mixed_logit[c] = log(self.mixed[c])
            mean += self.mixed_logit[c] / k
        for c in range(k):
            self.mixed_logit[c] -= mean
            self.sharpened[c] = self.final.factor * self.mixed_logit[c]
        softmax(k, self.sharpened, self.sharpened)

    cdef void apply_guard(self) noexcept nogil:
        """Write the output: the mixture, or the most frequent label just ahead of the most probable one."""
        cdef int best = argmax(self.classes, self.sharpened), common = argmax(self.classes, self.class_weight)
        cdef double both = self.sharpened[best] + self.sharpened[common]
        memcpy(self.output, self.sharpened, self.classes * sizeof(double))
        if guard_holds(self.guard, self.guard_strength, self.guard_full, self.classes, self.sharpened,
                       self.class_weight):
            self.output[common] = 0.51 * both
            self.output[best] = 0.49 * both

    cdef double log_threshold(self, int c) noexcept nogil:
        """Return the offset of a log-probability: of two labels the rarer is predicted from `threshold` on."""
        cdef bint is_rarer
        if self.classes != 2:
            return 0.0
        is_rarer = (c == 1) == (self.class_weight[1] <= self.class_weight[0])
        return log(self.threshold if is_rarer else 1.0 - self.threshold)

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef int c
        self.predict_all(v)
        for c in range(self.classes):
            out[c] = log(self.output[c]) - self.log_threshold(c)

    cdef void proba(self, double* scores, double* out) noexcept nogil:
        cdef int c
        for c in range(self.classes):
            out[c] = scores[c] + self.log_threshold(c)
        softmax(self.classes, out, out)

    # ---------------------------------------------------------------- learning

    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil:
        return 1 + self.experts.count * (classes + 1) + 2 * classes

    cdef void write_memo(self, double* out) noexcept nogil:
        """Write by expert whether it was idle, and its logits; then what the stack and what the mixture predicts."""
        cdef int e, k = self.classes
        out[0] = self.recent_error.count
        out += 1
        for e in range(self.experts.count):
            out[e * (k + 1)] = self.idle[e]
            memcpy(out + e * (k + 1) + 1, self.logit + e * k, k * sizeof(double))
        out += self.experts.count * (k + 1)
        memcpy(out, self.calibrated + self.experts.count * k, k * sizeof(double))
        memcpy(out + k, self.experts_mixed, k * sizeof(double))

    cdef void read_memo(self, const double* memo, int classes) noexcept nogil:
        """Let learn() judge these predictions; labels learned since then were the least probable."""
        cdef int e, c
        cdef const double* logit
        self.lag = self.recent_error.count - min(max(memo[0], 0.0), self.recent_error.count)
        memo += 1
        for e in range(self.experts.count):
            self.idle[e] = memo[e * (classes + 1)] != 0.0 or self.takes_no_part(e)
            logit = memo + e * (classes + 1) + 1
            for c in range(self.classes):
                self.logit[e * self.classes + c] = (
                    min(max(logit[c], -LOGIT_RANGE), LOGIT_RANGE) if c < classes else -LOGIT_RANGE / 2.0)
            self.calibrate(e)
        memo += self.experts.count * (classes + 1)
        for c in range(self.classes):
            self.issued_stack[c] = min(max(memo[c], 0.0), 1.0) if c < classes else 0.0
            self.issued_mixture[c] = min(max(memo[classes + c], 0.0), 1.0) if c < classes else 0.0
        self.recalled = classes

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef int e
        if self.recalled >= 0 and y >= self.recalled and (self.classes > 1 or self.class_weight[y] > 0.0):
            # it could not be predicted
            running_learn(self.recent_error, 1.0)
            if self.lag > 0.0:
                self.guard.unjudged += w
        elif self.classes > 1 and self.class_weight[y] > 0.0:
            self.learn_combination(v, y, w)
        elif self.classes > 1 or self.class_weight[y] > 0.0:    # the first instance of another label; or the only label
            running_learn(self.recent_error, self.class_weight[y] == 0.0)
        if y != self.last_label[0]:
            self.new_odds[0] += (-MOST_ODDS - self.new_odds[0]) / MEMORY
        self.last_label[0] = y
        self.recalled = -1
        self.lag = 0.0
        self.repeated[y] |= self.class_weight[y] > 0.0
        self.class_weight[y] += w
        forget_last(&self.experts.views)
        self.learn_experts(v, y, w)
        for e in range(self.experts.count):
            if self.was_restarted(e, v.step):
                self.temperature[e].variance = TEMPERATURE_VARIANCE
                stack_widen(&self.stack, RESTARTED)
        if self.classes > 1:
            self.update_pauses(<int64_t> self.recent_error.count)

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Let those experts learn that need no label; what combines them is learned from labels alone."""
        cdef int e
        forget_last(&self.experts.views)
        self.bound_columns(v)
        for e in range(self.experts.count):
            if self.unlabelled[e] and not self.is_idle(e, v.step):
                self.components.learn_unlabelled(e, self.seen_by(e, v), w)

    cdef void learn_combination(self, View* v, int y, double w) noexcept nogil:
        """Update all that combines the experts with their predictions, before they learn the instance."""
        cdef int e, k = self.classes, stack = self.experts.count
        cdef double paces[2]
        if self.recalled >= 0:
            self.combine()
            w = self.late_weight(y, w) if self.lag > 0.0 else w
        else:
            self.predict_all(without_new(&self.experts.views, v))
            self.pass_predictions()
        self.record(v.step, y)
        for e in range(stack + 1):
            if e < stack and self.idle[e]:    # its loss is estimated, and never below the mixture's
                self.loss[e] = max(self.excess_loss[e], 0.0) - log(self.mixed[y])
            else:
                self.loss[e] = -log((1.0 - FLOOR) * self.calibrated[e * k + y] + FLOOR / k)
                if e < stack:
                    self.excess_loss[e] += (self.loss[e] + log(self.mixed[y]) - self.excess_loss[e]) / MEMORY
        if self.recalled >= 0:    # labels learned since then have moved the stack towards this one
            self.loss[stack] = -log((1.0 - FLOOR) * self.issued_stack[y] + FLOOR / k)
        stack_learn(&self.stack, self.logit, self.calibrated + stack * k, y, w, DRIFT)
        for e in range(stack):
            if not self.idle[e]:
                self.update_use(e)
                temperature_learn(&self.temperature[e], TEMPERATURE_VARIANCE, k, self.logit + e * k,
                                  self.calibrated + e * k, y, w, TEMPERATURE_DRIFT)
        paces[0] = self.mixture_loss(self.fast_portion, y)
        paces[1] = self.mixture_loss(self.slow_portion, y)
        experts_learn(&self.pace, paces, w)
        if self.judges_new:
            self.new_odds[0] += w * log(self.as_known[y] / self.as_counted[y])
            self.new_odds[0] = min(max(self.new_odds[0], -MOST_ODDS), MOST_ODDS)
        experts_learn(&self.slow, self.loss, w)
        experts_learn(&self.experts.weights, self.loss, w)
        guard_learn(self.guard, k, self.sharpened, self.output, self.class_weight, y, w)
        temperature_learn(self.final, self.final_variance, k, self.mixed_logit, self.sharpened, y, w, DRIFT)

    cdef double late_weight(self, int y, double w) noexcept nogil:
        """Return the weight that the label of a memo counts with; weigh the labels' shares against the mixture."""
        cdef int c, k = self.classes
        cdef double judged
        cdef double losses[2]
        for c in range(k):
            self.score[c] = (c == y) - self.mixed[c]
        lateness_learn(self.lateness, self.lag, k, self.score, self.mean_error)
        judged = w / lateness_ratio(self.lateness, self.lag)
        self.guard.unjudged += w - judged
        losses[0] = -log(max(self.issued_mixture[y], FLOOR / k))
        losses[1] = -log(self.base_rate(y, self.total_weight()))
        experts_learn(&self.late, losses, judged)
        return judged

    cdef void update_use(self, int e) noexcept nogil:
        """Update how much the stack uses an expert: the distance of its weighted logits from their usual values."""
        cdef int c, k = self.classes
        cdef double moved, square = 0.0
        cdef double* usual
        for c in range(k):
            usual = &self.usual_logits[c * self.experts.count + e]
            moved = self.logit[e * k + c] - usual[0]
            square += moved * moved
            usual[0] += moved / MEMORY
        self.stack_use[e] += (fabs(self.stack.mean[e]) * sqrt(square / k) - self.stack_use[e]) / MEMORY

    cdef void pass_predictions(self) noexcept nogil:
        """Pass to restarting experts what they have predicted for the instance that they learn next."""
        cdef int e
        for e in range(self.experts.count):
            if self.restarts[e] and not self.idle[e]:
                (<prediction_call> set_prediction)(self.components.inner[e], <int> self.predicted[e])

    cdef bint was_restarted(self, int e, int64_t step) noexcept nogil:
        """Return whether the expert was replaced by another copy at this step."""
        return self.restarts[e] and (<restarted_call> restarted_at)(self.components.inner[e]) == step

    cdef void learn_experts(self, View* v, int y, double w) noexcept nogil:
        """Let the experts that are not idle learn the instance; disable those for which there are too many columns."""
        cdef int e
        self.bound_columns(v)
        for e in range(self.experts.count):
            if ((self.experts.max_columns[e] and self.columns() > self.experts.max_columns[e])
                    or self.exceeds_matrices(e, self.classes)):
                self.experts.disabled[e] = 1
            if e == self.categories_at or not self.is_idle(e, v.step):
                self.components.learn(e, self.seen_by(e, v), y, w)

    cdef void record(self, int64_t step, int y) noexcept nogil:
        """Update the recent losses and the watch on errors; record the weights from time to time."""
        cdef bint wrong = argmax(self.classes, self.output) != y
        cdef double* row = self.experts.history.next_row(step)
        running_learn(self.recent_error, self.decided() != y)
        running_learn(self.recent_loss, -log(self.output[y]))
        self.watch.learn(step, wrong)
        if row != NULL:
            self.current_weights(row)

    cdef int decided(self) noexcept nogil:
        """Return the label that is predicted from the output: by costs, by the threshold, or the most probable one."""
        cdef int rarer
        if self.decision is not None and self.decision.kind != MOST_PROBABLE:
            return self.decision.choose(self.classes, self.output, self.class_weight)
        if self.classes != 2 or self.threshold == 0.5:
            return argmax(self.classes, self.output)
        rarer = self.class_weight[1] <= self.class_weight[0]
        return rarer if self.output[rarer] >= self.threshold else 1 - rarer

    cdef void current_weights(self, double* out) noexcept nogil:
        """Write the weights of experts and stack; experts that are not used have none."""
        cdef int e
        cdef double total = 0.0
        self.find_portions()
        for e in range(self.experts.count + 1):
            out[e] = self.experts.portion[e] * (e == self.experts.count or not self.takes_no_part(e))
            total += out[e]
        for e in range(self.experts.count + 1):
            out[e] /= total

    # ---------------------------------------------------------------- looking inside

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        cdef int e, stack = self.experts.count
        cdef double total = 0.0
        self.find_portions()
        for e in range(stack):
            if not self.experts.disabled[e]:
                total += (self.experts.portion[e] + self.experts.portion[stack] / stack) * self.magnitude_in(e, slot)
        return total

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Add up the experts' contributions, each times its part in the output; the intercept gets the rest."""
        cdef int e, stack = self.experts.count
        cdef Py_ssize_t i
        cdef double part, total = 0.0
        cdef View* seen
        memset(out, 0, v.n * sizeof(double))
        self.predict_all(v)
        self.bound_columns(v)    # predict_all() may have reused predictions
        for e in range(stack):
            if self.experts.sees[e] == COLUMNS or self.idle[e]:
                continue
            part = (self.experts.portion[e] * self.temperature[e].factor
                    + self.experts.portion[stack] * self.stack.mean[e])
            seen = self.seen_by(e, v)
            self.components.contributions(e, seen, label, self.share)
            for i in range(seen.n):
                out[self.origin(e, i)] += part * self.share[i]
        for i in range(1, v.n):
            total += out[i]
        out[0] = log(self.output[label]) - self.log_threshold(label) - total

    @property
    def names(self):
        """Names of the experts."""
        return self.experts.names

    def expert_weights(self):
        """Return the current weights, summing to 1: of the experts (0 if takes_no_part()), then of the stack."""
        cdef double[::1] out = np.zeros(self.experts.count + 1)
        self.current_weights(&out[0])
        return dict(zip([*self.experts.names, "stack"], np.asarray(out).tolist()))

    def weight_history(self):
        """Return (steps, weights of experts and stack after each of them)."""
        return self.experts.history.rows()

    def recent(self):
        """Return error and log loss, averaged over about 50 and about 1,000 instances."""
        return {"error": self.recent_error.recent, "error_long": self.recent_error.usual,
                "log_loss": self.recent_loss.recent, "log_loss_long": self.recent_loss.usual}

    def error_rises(self):
        """Return the latest rises of the error, see `ErrorWatch.records`."""
        return self.watch.records()

    def restart_records(self):
        """Return, by restarting expert, the latest replacements by a copy."""
        return {name: model.restart_records() for name, model in zip(self.experts.names, self.experts.models)
                if isinstance(model, RestartingModel)}

    def disabled_experts(self):
        """Return the experts that too many columns or labels have disabled."""
        return [name for e, name in enumerate(self.experts.names) if self.experts.disabled[e]]

    def paused_experts(self):
        """Return the experts that are evaluated on every PAUSE_INTERVAL-th instance only."""
        return [name for e, name in enumerate(self.experts.names) if self.paused[e] and not self.experts.disabled[e]]

    def wide_columns(self):
        """Return the string columns that have too many levels for some experts, which see a part of them."""
        return self.categories.wide() if self.categories_at >= 0 else []

    def expert_states(self):
        """Return by expert what it sees, its limit, its status, the reason for that, and its model's notes."""
        cdef int e
        states = {}
        for e, name in enumerate(self.experts.names):
            status, reason = "active", ""
            if self.takes_no_part(e):
                status, reason = "disabled", self.why_disabled(e)
            elif self.paused[e]:
                status, reason = "paused", f"of little use; evaluated on every {PAUSE_INTERVAL}th instance"
            states[name] = {"sees": SEES[self.experts.sees[e]], "limit": self.experts.max_columns[e] or None,
                            "status": status, "reason": reason, "notes": tuple(self.experts.models[e].notes())}
        return states

    def why_disabled(self, int e):
        """Return the reason why an expert is not used."""
        most = self.experts.max_columns[e]
        if not self.experts.disabled[e]:
            return "no column has many levels"
        if most and self.columns() > most:
            return f"there are more than {most:,} columns"
        if self.classes <= MANY_CLASSES:
            return f"its matrices, one per label, would hold more than {MOST_CELLS:,} numbers"
        return f"there are more than {MANY_CLASSES:,} labels"

    def notes(self):
        notes = []
        for name, state in self.expert_states().items():
            if state["status"] != "disabled":
                notes.extend(f"{name}: {note}" for note in state["notes"])
            elif name in self.disabled_experts():
                notes.append(f"{name}: disabled, {state['reason']}")
        if self.paused_experts():
            notes.append(f"paused, evaluated on every {PAUSE_INTERVAL}th instance: {'; '.join(self.paused_experts())}")
        return notes

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        cdef Py_ssize_t i, d = self.stack.inputs + self.stack.biases
        return {
            **Model.dump(self, size),
            **self.experts.dump(),
            **self.watch.dump(),
            "stack.mean": np.array([self.stack.mean[i] for i in range(d)]),
            "stack.covariance": np.array([self.stack.cov[i] for i in range(d * d)]),
        }

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.experts.fill(arrays)
        Model.fill(self, arrays, capacity)
        self.watch.fill(arrays)
        self.fill_stack(arrays)

    def fill_stack(self, dict arrays):
        """Restore the weights of the stack and their covariance."""
        cdef Py_ssize_t i, d = self.stack.inputs + stack_biases(self.classes)
        mean = checked_array(arrays, "stack.mean", "f", (d,)).tolist()
        cov = checked_array(arrays, "stack.covariance", "f", (d * d,)).tolist()
        if stack_reserve(&self.stack, self.classes) < 0:
            raise MemoryError
        stack_lay_out(&self.stack, self.classes)
        for i in range(d):
            self.stack.mean[i] = mean[i]
        for i in range(d * d):
            self.stack.cov[i] = cov[i]
