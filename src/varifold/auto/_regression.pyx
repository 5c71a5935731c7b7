"""Mixture of `AutoRegressor`: experts, stacked, and mixed by their losses, that learn targets without outliers.

Everything is computed in deviations of the targets from their mean. For each instance

1. each of two *stacks* combines the experts' predictions linearly; its weights are learned by recursive least squares,
   with errors beyond HUBER typical ones cut to that size. DRIFTS is added to the variances of the weights, up to their
   values at the start: one stack hardly forgets, the other follows changes within about a hundred instances;
2. the *mixture* is the mean of the experts and the stacks under exponential weights (rate RATE, fixed share). A loss is
   the error divided by WORST typical errors, at most 1, squared or not. It lies in [0, 1], so that over T instances the
   mixture's loss exceeds that of the best of k experts and the stacks by at most ln(k + 2 TRUST) / RATE + T RATE / 8
   plus the price of sharing.

Targets that are *outliers* are moved towards the prediction before anything learns them:

- a target further than OUTLIER typical errors from the prediction is moved to that distance;
- after IN_A_ROW outliers on the same side either the level has changed (`_levels`), or errors have another size: then
  the distance is OUTLIER deviations, and after LASTING in a row targets are learned as they are;
- outliers among the first targets, before errors are known, are detected by comparing the targets (`_warm_up`); then
  new experts learn these instances again.
"""

import numpy as np

from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from varifold._engine.models.model cimport NO_LABEL, Model
from varifold._engine.models.regression cimport RegressionModel, TargetStatistics, learn_component, predict_component
from varifold._engine.names.reading cimport LARGEST
from varifold._engine.view cimport View
from varifold._numeric.hedge cimport experts_learn, experts_weights
from varifold._numeric.kernels cimport add_multiple, subtract_quotients
from varifold._numeric.memory cimport out_of_memory
from varifold.auto._expert_set cimport COLUMNS, ExpertSet
from varifold.auto._lateness cimport LATENESS_NUMBERS, Lateness, lateness_learn, lateness_ratio
from varifold.auto._levels cimport LEVEL_NUMBERS, Level, level_append, level_jumped, level_return, level_step
from varifold.auto._views cimport forget_last, keep_last, seen_last, without_new
from varifold.auto._warm_up cimport FIRST, WIDEST, Bounds, WarmUp, within_bounds

from varifold._engine.state import fixed, per_slot

cdef enum:
    STACKS = 2

cdef double[STACKS] DRIFTS = [1e-5, 1e-2]  # added to the variances of a stack's weights per instance
cdef double RATE = 3.0             # of the exponential weights
cdef double SHARE = 0.003          # part of all weight that is redistributed evenly after each instance
cdef double TRUST = 2.0            # weight of a stack at the start, as a multiple of an expert's
cdef double BIAS_VARIANCE = 1.0    # of a stack's constant at the start, never exceeded
cdef double WORST = 4.0            # typical errors at which a loss reaches its largest value
cdef double HUBER = 3.0            # typical errors to which the stack cuts errors
cdef double MEMORY = 200.0         # instances over which the typical error is averaged
cdef double FAR = 1e6              # largest prediction of an expert, in deviations from the mean
cdef double SMALLEST = 1e-9        # typical error, in deviations
cdef double LARGEST_WEIGHT = 100.0 # largest sample weight in the stack
cdef double OUTLIER = 12.0         # typical errors beyond which a target is an outlier
cdef double IN_A_ROW = 5.0         # more outliers on the same side mean a new level, or errors of another size
cdef double LASTING = 30.0         # more outliers on the same side are learned as they are
cdef double FIRST_ROUNDS = 30.0    # before this many instances the typical error is too uncertain to find outliers,
                                   # and the deviation of the targets to keep errors in it


cdef double cut(double z, double largest) noexcept nogil:
    """Return z, cut to this size."""
    return largest if z > largest else -largest if z < -largest else z


cdef enum:
    STATISTICS_NUMBERS = 5     # as saved
    ERRORS_NUMBERS = 4

cdef struct Statistics:
    double rounds              # instances evaluated
    double typical_error       # running mean of the mixture's absolute error, in deviations of the target
    double outliers            # outliers in a row: above the prediction counted up from 0, below it down
    double[STACKS] stack_square    # running mean of a stack's squared error

cdef struct Errors:            # of the predictions, in the target's units, for the report
    double recent              # mean of about 50
    double usual               # mean of about 1,000,
    double usual_square        # and of their squares
    double count


# What is known of the prediction of the instance that is learned.
cdef enum Recalled:
    NO_MEMO
    PREDICTED
    NOT_PREDICTED              # its memo was written before the experts could predict


cdef class RegressionMixture(RegressionModel):
    """Experts of a table (see `experts.Expert`) and all that combines them.

    With `learn_unlabelled`, instances without a target join the statistics by which the engine scales values, and the
    experts that need no target learn them.
    """

    cdef tuple table               # the experts as given, to begin again
    cdef ExpertSet experts
    cdef bint absolute             # experts are evaluated by absolute instead of squared errors
    cdef TargetStatistics own      # statistics of the targets without outliers, for the experts
    cdef Statistics* statistics
    cdef Errors* errors
    cdef double* mean              # [stack][k + 1]: its weights and its constant
    cdef double* cov               # [stack][k + 1][k + 1]: their covariance
    cdef double* variance          # [k + 1]: their variances at the start, never exceeded
    cdef Lateness* lateness
    cdef double* mean_error        # signed, of late targets
    cdef Level* level              # an offset to the experts' predictions
    cdef WarmUp warm_up            # the first instances, until it is known which targets are outliers
    cdef RegressionMixture relearned   # one that has learned these without outliers; learning adopts it

    # of the instance at hand, in deviations from the mean
    cdef double* prediction        # [k + STACKS]: of experts and stacks
    cdef double* issued            # [k]: predictions of the experts in the target's units, or those of a memo
    cdef Recalled recalled         # whether they are those of a memo,
    cdef double lag                # written this many targets ago
    cdef double* loss              # [k + STACKS]
    cdef double* input             # [k + 1]: of the stacks: predictions of the experts and 1
    cdef double* work              # [k + 1]
    cdef double* share             # [slot]: contributions of one expert
    cdef int64_t* unlabelled       # [expert]: learns instances without a target

    def __cinit__(self, experts, bint absolute=False, bint learn_unlabelled=False):
        cdef int e, s, k = len(experts)
        self.table = tuple(experts)
        self.experts = ExpertSet(experts, RATE, SHARE, TRUST, STACKS)
        self.components = self.experts.components
        self.absolute = absolute
        self.own = TargetStatistics()
        self.warm_up = WarmUp()
        self.sees_empty = True
        self.wants_columns = True
        self.prepares = True
        self.learns_unlabelled = learn_unlabelled
        self.arrays.declare("statistics", <double**> &self.statistics, fixed(STATISTICS_NUMBERS))
        self.arrays.declare("errors", <double**> &self.errors, fixed(ERRORS_NUMBERS))
        self.arrays.declare("stack.mean", &self.mean, fixed(STACKS, width=k + 1))
        self.arrays.declare("stack.covariance", &self.cov, fixed(STACKS * (k + 1), width=k + 1))
        self.arrays.declare("lateness", <double**> &self.lateness, fixed(LATENESS_NUMBERS, low=0))
        self.arrays.declare("lateness.mean_error", &self.mean_error, fixed(1, low=-1, high=1))
        self.arrays.declare("level", <double**> &self.level, fixed(LEVEL_NUMBERS))
        self.arrays.scratch(&self.variance, fixed(k + 1))
        self.arrays.scratch(&self.prediction, fixed(k + STACKS))
        self.arrays.scratch(&self.issued, fixed(k))
        self.arrays.scratch(&self.loss, fixed(k + STACKS))
        self.arrays.scratch(&self.input, fixed(k + 1))
        self.arrays.scratch(&self.work, fixed(k + 1))
        self.arrays.scratch(&self.share, per_slot())
        self.arrays.scratch(&self.unlabelled, fixed(k))
        for e, expert in enumerate(experts):
            self.unlabelled[e] = self.experts.models[e].learns_unlabelled
            self.variance[e] = expert.stack_variance
            for s in range(STACKS):
                self.mean[s * (k + 1) + e] = expert.stack_weight
        self.variance[k] = BIAS_VARIANCE
        for s in range(STACKS):
            for e in range(k + 1):
                self.cov[(s * (k + 1) + e) * (k + 1) + e] = self.variance[e]

    # ---------------------------------------------------------------- memory

    cdef int attach_target(self, TargetStatistics target) except -1:
        for model in self.experts.models:
            (<RegressionModel?> model).attach_target(self.own)
        return RegressionModel.attach_target(self, target)

    cdef int grow(self, Py_ssize_t capacity) except -1:
        self.experts.reserve_views(capacity)
        forget_last(&self.experts.views)
        return RegressionModel.grow(self, capacity)

    cdef int prepare(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new, int y) except -1 nogil:
        if y == NO_LABEL:
            return 0
        if not self.warm_up.over:
            self.prepare_warm_up(slots, n, n_new)
        return RegressionModel.prepare(self, slots, n, n_new, y)

    cdef void forget(self, int32_t slot) noexcept nogil:
        self.warm_up.forget(slot)
        if self.relearned is not None:
            self.relearned.forget(slot)
        RegressionModel.forget(self, slot)
        forget_last(&self.experts.views)

    # ---------------------------------------------------------------- the first instances

    cdef int prepare_warm_up(self, const int32_t* slots, Py_ssize_t n, Py_ssize_t n_new) except -1 nogil:
        """Reserve memory to keep the instance; learn those kept again if there is an outlier among them."""
        if (self.warm_up.count < FIRST and n + n_new < WIDEST
                and self.warm_up.reserve(self.warm_up.count, n + n_new + 1) < 0):
            return out_of_memory()
        if self.warm_up.differs():
            with gil:
                self.relearn()
                self.relearned.prepare(slots, n, n_new, 0)
        return 0

    cdef int relearn(self) except -1:
        """Let a new mixture, which nobody sees yet, learn the first instances without outliers."""
        cdef RegressionMixture fresh = RegressionMixture(self.table, self.absolute)
        cdef View* v
        cdef Py_ssize_t i
        cdef Bounds bounds = self.warm_up.bounds()
        self.relearned = None
        fresh.warm_up.end()
        fresh.attach(self.space)
        fresh.attach_target(self.target)
        fresh.grow(self.capacity)
        for i in range(self.warm_up.count):
            v = &self.warm_up.rows[i].view
            fresh.prepare(v.slot, v.n, 0, 0)
            fresh.learn_target(v, within_bounds(bounds, self.warm_up.rows[i].y), self.warm_up.rows[i].w)
        self.relearned = fresh
        return 0

    cdef int adopt_relearned(self) except -1:
        """Adopt the experts and all that was learned about them from the mixture that learned again."""
        cdef RegressionMixture other = self.relearned
        cdef Py_ssize_t i, d = self.experts.count + 1
        cdef Bounds bounds = self.warm_up.bounds()
        for i in range(self.warm_up.count):
            self.warm_up.rows[i].learned = within_bounds(bounds, self.warm_up.rows[i].y)
        self.experts, self.components, self.own = other.experts, other.components, other.own
        self.statistics[0] = other.statistics[0]
        self.errors[0] = other.errors[0]
        self.level[0] = other.level[0]
        memcpy(self.mean, other.mean, STACKS * d * sizeof(double))
        memcpy(self.cov, other.cov, STACKS * d * d * sizeof(double))
        self.relearned = None
        return 0

    cdef double warm(self, View* v, double y, double w) noexcept nogil:
        """Keep one of the first instances; return its target, moved if it is an outlier among those before."""
        cdef double learned
        if self.relearned is not None:
            with gil:
                self.adopt_relearned()
        self.warm_up.checked = self.warm_up.count
        if self.warm_up.count == FIRST:
            self.warm_up.end()
            return y
        learned = within_bounds(self.warm_up.bounds(), y)
        self.warm_up.keep(v, y, learned, w)
        return learned

    # ---------------------------------------------------------------- predicting

    cdef View* seen_by(self, int e, View* v) noexcept nogil:
        return self.experts.columns_of(v) if self.experts.sees[e] == COLUMNS else v

    cdef void predict_all(self, View* v) noexcept nogil:
        """Predict with every expert and the stacks; reuse the predictions for the same instance.

        A disabled expert predicts the mean.
        """
        cdef int e
        if seen_last(&self.experts.views, v):
            return
        keep_last(&self.experts.views, v)
        for e in range(self.experts.count):
            self.prediction[e] = 0.0
            self.issued[e] = self.own.mean
            if not self.experts.disabled[e]:
                self.issued[e] = predict_component(self.components, e, self.seen_by(e, v))
                self.prediction[e] = self.in_deviations(self.issued[e])
        self.predict_stacks()

    cdef void predict_stacks(self) noexcept nogil:
        cdef int s
        for s in range(STACKS):
            self.prediction[self.experts.count + s] = self.stacked(self.mean + s * (self.experts.count + 1))
        self.experts.update_portions()

    cdef double in_deviations(self, double y) noexcept nogil:
        """Return an expert's prediction in deviations from the mean."""
        cdef double z = (y - self.own.mean) / self.own.deviation
        return cut(z, FAR) if isfinite(z) else 0.0

    cdef double stacked(self, const double* mean) noexcept nogil:
        """Return a stack's prediction, at most a typical error outside of the experts' predictions."""
        cdef int e
        cdef double z = mean[self.experts.count], low = self.prediction[0], high = self.prediction[0]
        for e in range(self.experts.count):
            z += mean[e] * self.prediction[e]
            low = min(low, self.prediction[e])
            high = max(high, self.prediction[e])
        low -= self.statistics.typical_error
        high += self.statistics.typical_error
        return low if z < low else high if z > high else z

    cdef double mixed(self) noexcept nogil:
        """Return the weighted mean of the predictions, in deviations."""
        cdef int e
        cdef double z = 0.0
        for e in range(self.experts.count + STACKS):
            z += self.experts.portion[e] * self.prediction[e]
        return z

    cdef double mixture(self) noexcept nogil:
        """Return the same in the target's units, without the offset of the level."""
        return self.own.mean + self.own.deviation * self.mixed()

    cdef double predict(self, View* v) noexcept nogil:
        if self.own.deviation <= 0.0:
            return self.own.mean + self.level.offset
        self.predict_all(v)
        return self.mixture() + self.level.offset

    # ---------------------------------------------------------------- learning

    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil:
        return self.experts.count + 2

    cdef void write_memo(self, double* out) noexcept nogil:
        """Write whether the experts predicted, how many targets were learned, and the predictions in their units."""
        cdef int e
        out[0] = self.own.deviation > 0.0
        out[1] = self.statistics.rounds
        for e in range(self.experts.count):
            out[e + 2] = self.issued[e] if isfinite(self.issued[e]) else self.own.mean

    cdef void read_memo(self, const double* memo, int classes) noexcept nogil:
        self.recalled = NOT_PREDICTED
        if memo[0] != 0.0:
            self.recalled = PREDICTED
            self.lag = self.statistics.rounds - min(max(memo[1], 0.0), self.statistics.rounds)
            memcpy(self.issued, memo + 2, self.experts.count * sizeof(double))

    cdef void recall(self) noexcept nogil:
        """Combine the experts' predictions of the memo."""
        cdef int e
        for e in range(self.experts.count):
            self.prediction[e] = 0.0 if self.experts.disabled[e] else self.in_deviations(self.issued[e])
        self.predict_stacks()

    cdef void learn_unlabelled(self, View* v, double w) noexcept nogil:
        """Let those experts learn that need no target; what combines them is learned from targets alone."""
        cdef int e
        forget_last(&self.experts.views)
        for e in range(self.experts.count):
            if self.unlabelled[e] and not self.experts.disabled[e]:
                self.components.learn_unlabelled(e, self.seen_by(e, v), w)

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        cdef double z, learned, before
        cdef double* row
        if not self.warm_up.over:
            y = self.warm(v, y, w)
        if self.own.deviation > 0.0 and self.recalled == PREDICTED:
            self.recall()
        elif self.own.deviation > 0.0:
            self.predict_all(without_new(&self.experts.views, v))
        forget_last(&self.experts.views)
        learned = cut(self.without_outlier(y), LARGEST)  # an offset may lead beyond what targets may be
        if self.own.deviation > 0.0 and self.recalled != NOT_PREDICTED:
            z = cut((learned - self.own.mean) / self.own.deviation, FAR)
            self.count_error(fabs(z - self.mixed()) * self.own.deviation)
            self.learn_combination(z, self.late_weight(z, w) if self.recalled == PREDICTED and self.lag > 0.0 else w)
        self.recalled = NO_MEMO
        before = self.own.deviation
        self.own.absorb(learned, w)
        self.keep_units(before)
        self.learn_experts(v, learned, w)
        row = self.experts.history.next_row(v.step)
        if row != NULL:
            experts_weights(&self.experts.weights, row)

    cdef void keep_units(self, double before) noexcept nogil:
        """Express the first errors in the new deviation of the targets instead of the one before.

        That of the first targets may be tiny: one error, a thousand of these, would be the typical error for long.
        """
        cdef int i
        cdef double ratio
        if before <= 0.0 or self.own.deviation <= 0.0 or self.statistics.rounds > FIRST_ROUNDS:
            return
        ratio = before / self.own.deviation
        self.statistics.typical_error = min(self.statistics.typical_error * ratio, FAR)
        for i in range(STACKS):
            self.statistics.stack_square[i] = min(self.statistics.stack_square[i] * ratio * ratio, FAR)

    cdef double late_weight(self, double z, double w) noexcept nogil:
        """Return the weight that the target of a memo counts with."""
        cdef double error = cut((z - self.mixed()) / (WORST * max(self.statistics.typical_error, SMALLEST)), 1.0)
        lateness_learn(self.lateness, self.lag, 1, &error, self.mean_error)
        return w / lateness_ratio(self.lateness, self.lag)

    cdef double without_outlier(self, double y) noexcept nogil:
        """Return the target less the offset of the level; move it towards the prediction if it is an outlier."""
        cdef double residual, most
        cdef double* row = &self.statistics.outliers
        if self.statistics.rounds < FIRST_ROUNDS or self.own.deviation <= 0.0:
            return self.at_level(y)
        most = OUTLIER * self.statistics.typical_error * self.own.deviation
        residual = self.at_level(y) - self.mixture()
        if (fabs(residual) > most and self.level.has_previous
                and fabs(y - self.level.previous - self.mixture()) <= most):
            level_return(self.level)
            residual = self.at_level(y) - self.mixture()
        if fabs(residual) <= most:
            row[0] = 0.0
            return self.at_level(y)
        row[0] = max(row[0], 0.0) + 1.0 if residual > 0.0 else min(row[0], 0.0) - 1.0
        level_append(self.level, residual)
        if fabs(row[0]) > IN_A_ROW and level_jumped(self.level):
            level_step(self.level)
            row[0] = 0.0
            return self.at_level(y)
        if fabs(row[0]) > LASTING:
            return self.at_level(y)
        if fabs(row[0]) > IN_A_ROW:
            most = max(most, OUTLIER * self.own.deviation)
        return self.mixture() + (min(residual, most) if residual > 0.0 else max(residual, -most))

    cdef double at_level(self, double y) noexcept nogil:
        """Return the target less the offset of the level."""
        return y - self.level.offset

    cdef void learn_combination(self, double z, double w) noexcept nogil:
        """Update weights and stacks with the predictions for a target of z deviations."""
        cdef int i, k = self.experts.count
        cdef Statistics* s = self.statistics
        cdef double rate = 1.0 / min(s.rounds + 1.0, MEMORY), error = fabs(z - self.mixed())
        s.typical_error += rate * (error - s.typical_error)
        s.rounds += 1.0
        self.learn_weights(z, min(w, 1.0))
        memcpy(self.input, self.prediction, k * sizeof(double))
        self.input[k] = 1.0
        for i in range(STACKS):
            error = z - self.prediction[k + i]
            s.stack_square[i] += rate * (min(error * error, FAR) - s.stack_square[i])
            self.learn_stack(i, z, w)

    cdef void learn_weights(self, double z, double w) noexcept nogil:
        """Update the exponential weights with the losses of experts and stacks."""
        cdef int e
        cdef double error, unit = max(self.statistics.typical_error, SMALLEST)
        for e in range(self.experts.count + STACKS):
            error = min(fabs(z - self.prediction[e]) / (WORST * unit), 1.0)
            self.loss[e] = error if self.absolute else error * error
        experts_learn(&self.experts.weights, self.loss, w)

    cdef void learn_stack(self, int s, double z, double w) noexcept nogil:
        """Update a stack: recursive least squares, with the mean square of its errors as noise.

        With inputs x (the experts' predictions and 1): mean += C x e / (noise + x^T C x), C -= C x x^T C / (...).
        """
        cdef int i, d = self.experts.count + 1
        cdef double error = z, spread = 0.0, noise, gain
        cdef double* mean = self.mean + s * d
        cdef double* cov = self.cov + s * d * d
        memset(self.work, 0, d * sizeof(double))
        for i in range(d):
            error -= mean[i] * self.input[i]
            add_multiple(d, self.work, self.input[i], cov + i * d)    # the covariance is symmetric to the bit
        for i in range(d):
            spread += self.input[i] * self.work[i]
        error = cut(error, HUBER * max(self.statistics.typical_error, SMALLEST))
        noise = max(self.statistics.stack_square[s], SMALLEST) / min(w, LARGEST_WEIGHT)
        gain = 1.0 / (noise + spread)
        if spread >= 0.0 and isfinite(spread) and isfinite(error):
            for i in range(d):
                mean[i] += gain * error * self.work[i]
                subtract_quotients(d, cov + i * d, self.work[i], self.work, noise + spread)
                cov[i * d + i] = min(cov[i * d + i] + DRIFTS[s], self.variance[i])

    cdef void learn_experts(self, View* v, double y, double w) noexcept nogil:
        """Let the experts learn; disable those for which there are too many features."""
        cdef int e
        for e in range(self.experts.count):
            if self.experts.max_columns[e] and self.space.size > self.experts.max_columns[e]:
                self.experts.disabled[e] = 1
            if not self.experts.disabled[e]:
                learn_component(self.components, e, self.seen_by(e, v), y, w)

    cdef void count_error(self, double error) noexcept nogil:
        """Count the error of a prediction, in the target's units."""
        cdef Errors* e = self.errors
        cdef double slow
        e.count += 1.0
        slow = 1.0 / min(e.count, 1000.0)
        e.recent += (error - e.recent) / min(e.count, 50.0)
        e.usual += (error - e.usual) * slow
        e.usual_square += (min(error * error, 1e300) - e.usual_square) * slow

    # ---------------------------------------------------------------- looking inside

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        """Return the weighted mean of the experts' magnitudes, without experts that see columns."""
        cdef int e, s, k = self.experts.count
        cdef double total = 0.0, stacks = 0.0
        self.experts.update_portions()
        for s in range(STACKS):
            stacks += self.experts.portion[k + s]
        for e in range(k):
            if self.experts.sees[e] != COLUMNS and not self.experts.disabled[e]:
                total += (self.experts.portion[e] + stacks / k) * self.components.magnitude(e, slot)
        return total

    cdef double part_of(self, int e) noexcept nogil:
        """Return the factor of an expert's prediction in the mixture, directly and through the stacks."""
        cdef int s, k = self.experts.count
        cdef double part = self.experts.portion[e]
        for s in range(STACKS):
            part += self.experts.portion[k + s] * self.mean[s * (k + 1) + e]
        return part

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef int e
        memset(out, 0, v.n * sizeof(double))
        if self.own.deviation <= 0.0:
            return
        self.predict_all(v)
        for e in range(self.experts.count):
            if self.experts.sees[e] == COLUMNS or self.experts.disabled[e]:
                continue
            memset(self.share, 0, v.n * sizeof(double))
            self.components.contributions(e, v, 0, self.share)
            if self.is_moderate(v.n):
                for i in range(v.n):
                    out[i] += self.part_of(e) * self.share[i]

    cdef bint is_moderate(self, Py_ssize_t n) noexcept nogil:
        """Return whether no contribution of an expert exceeds the bound; else the intercept gets them."""
        cdef Py_ssize_t i
        for i in range(n):
            if not fabs(self.share[i]) <= FAR * self.own.deviation:
                return False
        return True

    cdef dict absent_contributions(self, View* v, int label):
        """Return what absent features add; the intercept gets presence, the stacks' constants and the means."""
        cdef int e
        cdef Py_ssize_t i
        cdef double[::1] out
        cdef double rest = self.predict(v) - self.target.mean
        absent = {}
        if self.own.deviation > 0.0:
            for e in range(self.experts.count):
                if self.experts.sees[e] != COLUMNS and not self.experts.disabled[e]:
                    for key, part in (<Model> self.experts.models[e]).absent_contributions(v, 0).items():
                        if abs(part) <= FAR * self.own.deviation:
                            absent[key] = absent.get(key, 0.0) + self.part_of(e) * part
        out = np.zeros(max(1, v.n))
        self.contributions(v, 0, &out[0])
        rest -= sum(absent.values()) + sum([out[i] for i in range(v.n)])
        absent["(intercept)"] = absent.get("(intercept)", 0.0) + rest
        return absent

    @property
    def names(self):
        """Names of the experts."""
        return self.experts.names

    def expert_weights(self):
        """Return the weight by expert, the stacks last."""
        self.experts.update_portions()
        return {name: self.experts.portion[e]
                for e, name in enumerate([*self.experts.names, "stack", "stack, recent"])}

    def weight_history(self):
        """Return (steps, weights of experts and stacks after each of them)."""
        return self.experts.history.rows()

    def typical_error(self):
        """Return the mean absolute error of about 200 predictions, in the target's units; NaN before the first."""
        if self.statistics.rounds > 0.0:
            return self.statistics.typical_error * self.own.deviation
        return 0.0 if self.own.deviation <= 0.0 and self.space.step > 1 else float("nan")    # all targets were equal

    def error_means(self):
        """Return the mean error of about 50 and about 1,000 predictions, the latter's deviation, and their number."""
        cdef Errors* e = self.errors
        return e.recent, e.usual, max(e.usual_square - e.usual * e.usual, 0.0) ** 0.5, int(e.count)

    def notes(self):
        cdef int e
        notes = []
        for e, name in enumerate(self.experts.names):
            if self.experts.disabled[e]:
                notes.append(f"{name}: disabled, there are more than {self.experts.max_columns[e]:,} features")
            else:
                notes.extend(f"{name}: {note}" for note in self.experts.models[e].notes())
        return notes

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        return {**RegressionModel.dump(self, size), **self.experts.dump(), **self.warm_up.dump(),
                "target": self.own.dump()}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.warm_up.fill(arrays, self.space.size)
        self.own.fill(arrays)
        self.experts.fill(arrays)
        RegressionModel.fill(self, arrays, capacity)

    def nbytes(self):
        return RegressionModel.nbytes(self) + self.warm_up.nbytes()
