"""Several detectors at once: how unusual their scores are among their last ones, averaged."""

from libc.math cimport NAN, exp, log
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.conformal.recent_scores cimport RecentScores
from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import fixed, per_slot

REST = "(no single feature)"

cdef double LEARNING = 4.0     # of the weights, by label of the rarer kind
cdef double FADING = 0.99      # of earlier labels, by label of the same kind


# ---------------------------------------------------------------- RecentScores by a pointer, without the GIL

ctypedef double (*share_call)(void*, double) noexcept nogil
ctypedef void (*keep_call)(void*, double) noexcept nogil


cdef double call_share(RecentScores recent, double score) noexcept nogil:
    return recent.share_beyond(score) if recent.place[0] else 1.0


cdef void call_keep(RecentScores recent, double score) noexcept nogil:
    recent.keep(score)


cdef class AutoDetectorModel(Model):
    """Weighted mean over the experts of minus the logarithm of the share of their last scores that are larger.

    Labels of usual instances and of anomalies, if some come, change the weights by exponential weighting. The loss of an
    expert is the share itself for an anomaly and 1 minus the share for a usual instance, averaged by kind of label: the
    expected loss is 1 minus the area under the ROC curve.
    """

    cdef readonly list recent          # RecentScores by expert
    cdef void** scored                 # the same, for calls without the GIL
    cdef Py_ssize_t n
    cdef double* prior                 # scratch [expert], weights without labels; their sum is 1
    cdef double* weight                # scratch [expert], their sum is 1
    cdef double* loss                  # [usual, anomaly][expert] sums of losses, which fade
    cdef double* labels                # [usual, anomaly] their number, which fades
    cdef double* score                 # scratch [expert]
    cdef double* part                  # scratch [slot]
    cdef double* share                 # scratch [slot]

    def __cinit__(self, dict experts not None, dict weights not None):
        self.recent = []
        self.n = len(experts)
        self.arrays.declare("loss", &self.loss, fixed(2, width=self.n, low=0))
        self.arrays.declare("labels", &self.labels, fixed(2, low=0))
        self.arrays.scratch(&self.prior, fixed(self.n))
        self.arrays.scratch(&self.weight, fixed(self.n))
        self.arrays.scratch(&self.score, fixed(self.n))
        self.arrays.scratch_bytes(<void**> &self.scored, sizeof(void*), fixed(self.n))
        self.arrays.scratch(&self.part, per_slot())
        self.arrays.scratch(&self.share, per_slot())
        for name, model in experts.items():
            self.hold(name + ".", model)
            recent = RecentScores()
            self.prior[len(self.recent)] = weights[name] / sum(weights.values())
            self.recent.append(recent)
            self.scored[len(self.recent) - 1] = <void*> recent
        self.weigh()

    cdef void weigh(self) noexcept nogil:
        """Compute the weights from the losses, once there are labels of both kinds."""
        cdef Py_ssize_t e
        cdef double rarer = min(self.labels[0], self.labels[1]), least = 0.0, total = 0.0
        for e in range(self.n):
            self.weight[e] = 0.0
            if rarer > 0.0:
                self.weight[e] = 0.5 * (self.loss[e] / self.labels[0] + self.loss[self.n + e] / self.labels[1])
            if e == 0 or self.weight[e] < least:
                least = self.weight[e]
        for e in range(self.n):
            self.weight[e] = self.prior[e] * exp(-LEARNING * rarer * (self.weight[e] - least))
            total += self.weight[e]
        for e in range(self.n):
            self.weight[e] /= total

    def begin_label(self):
        """Forget the scores of the last instance, so that `label` notices if the next one has no known feature."""
        self.score[0] = NAN

    def label(self, bint anomaly):
        """Learn the label of the instance that was scored last."""
        cdef Py_ssize_t e
        cdef double share
        if self.score[0] != self.score[0]:
            return
        self.labels[anomaly] = FADING * self.labels[anomaly] + 1.0
        for e in range(self.n):
            share = exp(-self.surprise(e, self.score[e]))
            self.loss[anomaly * self.n + e] = FADING * self.loss[anomaly * self.n + e] + (
                share if anomaly else 1.0 - share)
        self.weigh()

    def weights(self):
        """Return the weight of each expert."""
        return [self.weight[e] for e in range(self.n)]

    cdef double surprise(self, Py_ssize_t e, double score) noexcept nogil:
        """Return minus the logarithm of the share of the expert's last scores that are larger."""
        return -log((<share_call> call_share)(self.scored[e], score))

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t e
        out[0] = 0.0
        for e in range(self.n):
            self.components.scores(e, v, &self.score[e])
            out[0] += self.weight[e] * self.surprise(e, self.score[e])

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef double score
        self.learn_scored(v, y, w, &score, NULL)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score the instance; keep the experts' scores, and let them learn it."""
        cdef Py_ssize_t e
        scores[0] = 0.0
        for e in range(self.n):
            self.components.learn_scored(e, v, y, w, &self.score[e], NULL)
            scores[0] += self.weight[e] * self.surprise(e, self.score[e])
            (<keep_call> call_keep)(self.scored[e], self.score[e])

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Split each expert's surprise in proportion to what raises its score."""
        self.split(v, out)

    cdef dict absent_contributions(self, View* v, int label):
        cdef double rest = self.split(v, self.part)
        return {REST: rest} if rest else {}

    cdef double split(self, View* v, double* out) noexcept nogil:
        """Write the parts of the entries; return the surprise of experts whose score no entry raises."""
        cdef Py_ssize_t e, i
        cdef double total, surprise, rest = 0.0
        memset(out, 0, v.n * sizeof(double))
        for e in range(self.n):
            self.components.scores(e, v, &self.score[e])
            surprise = self.weight[e] * self.surprise(e, self.score[e])
            self.components.contributions(e, v, 0, self.share)
            total = 0.0
            for i in range(v.n):
                total += max(self.share[i], 0.0)
            if not total > 0.0:
                rest += surprise
            for i in range(v.n if total > 0.0 else 0):
                out[i] += surprise * (max(self.share[i], 0.0) / total)
        return rest

    cdef double magnitude(self, int32_t slot) noexcept nogil:
        return self.components.magnitude(0, slot)

    # ---------------------------------------------------------------- files

    def dump(self, Py_ssize_t size):
        arrays = Model.dump(self, size)
        for e, recent in enumerate(self.recent):
            arrays.update({f"recent.{e}.{key}": array for key, array in recent.dump().items()})
        return arrays

    def fill(self, dict arrays, Py_ssize_t capacity):
        for e, recent in enumerate(self.recent):
            recent.fill({key: arrays[f"recent.{e}.{key}"] for key in ("place", "scores")})
        Model.fill(self, arrays, capacity)
        self.weigh()

    def nbytes(self):
        return Model.nbytes(self) + sum(recent.nbytes() for recent in self.recent)
