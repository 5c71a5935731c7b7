"""Several detectors at once: how unusual their scores are among their last ones, the mean and the largest; presence."""

from libc.math cimport NAN, exp, log
from libc.stdint cimport int32_t
from libc.string cimport memset

from varifold._engine.conformal.recent_scores cimport RecentScores
from varifold._engine.models.model cimport Model
from varifold._engine.view cimport View

from varifold.anomaly._absence cimport AbsenceModel

from varifold._engine.state import fixed, per_slot

REST = "(no single feature)"

cdef double SURE = 0.2         # weight of the largest surprise, in addition to that of its expert
cdef double ABSENCE = 0.25     # weight of the surprise of absence,
cdef double UNUSUAL = 3.0      # which counts from this score of it on
cdef double RARITY = 1.0       # and of that of rare columns that are present
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
    """Weighted mean of the experts' surprises, a fifth of the largest one, and the surprise of absent or rare columns.

    The surprise is minus the logarithm of the share of an expert's last scores that are larger. Most experts do not see
    what a single one is made for, such as two features that no longer belong together; so the largest counts twice.

    Labels of usual instances and of anomalies, if some come, change the weights by exponential weighting. The loss of an
    expert is the share itself for an anomaly and 1 minus the share for a usual instance, averaged by kind of label: the
    expected loss is 1 minus the area under the ROC curve. The largest surprise is that after multiplying by an expert's
    `trust`, so that an expert that labels contradict cannot be the one.

    Most streams have absences that mean nothing, whose ranks would be noise: absence counts only if columns are absent
    that are hardly ever. That rare columns are present counts where instances have common and rare ones, as texts have
    words. Both are from `AbsenceModel`, and labels do not weigh them.
    """

    cdef AbsenceModel absence          # the last component
    cdef readonly list recent          # RecentScores by expert, then of absence and of rarity
    cdef void** scored                 # the same, for calls without the GIL
    cdef Py_ssize_t n
    cdef double* prior                 # scratch [expert], weights without labels; their sum is 1
    cdef double* trust                 # scratch [expert], 1 for the best one by labels, and for all without labels
    cdef double* weight                # scratch [expert], prior times trust; their sum is 1
    cdef double* loss                  # [usual, anomaly][expert] sums of losses, which fade
    cdef double* labels                # [usual, anomaly] their number, which fades
    cdef double* score                 # scratch [expert, absence, rarity]
    cdef double* amount                # scratch [expert, absence, rarity] surprise, then what it adds to the score
    cdef double* part                  # scratch [slot]
    cdef double* share                 # scratch [slot]

    def __cinit__(self, dict experts not None, dict weights not None):
        self.recent = []
        self.n = len(experts)
        self.wants_columns = True
        self.arrays.declare("loss", &self.loss, fixed(2, width=self.n, low=0))
        self.arrays.declare("labels", &self.labels, fixed(2, low=0))
        self.arrays.scratch(&self.prior, fixed(self.n))
        self.arrays.scratch(&self.trust, fixed(self.n))
        self.arrays.scratch(&self.weight, fixed(self.n))
        self.arrays.scratch(&self.score, fixed(self.n + 2))
        self.arrays.scratch(&self.amount, fixed(self.n + 2))
        self.arrays.scratch_bytes(<void**> &self.scored, sizeof(void*), fixed(self.n + 2))
        self.arrays.scratch(&self.part, per_slot())
        self.arrays.scratch(&self.share, per_slot())
        self.absence = AbsenceModel()
        for name, model in [*experts.items(), ("absence", self.absence)]:
            self.hold(name + ".", model)
        for e in range(self.n + 2):
            recent = RecentScores()
            self.recent.append(recent)
            self.scored[e] = <void*> recent
        for e, name in enumerate(experts):
            self.prior[e] = weights[name] / sum(weights.values())
        self.weigh()

    cdef void weigh(self) noexcept nogil:
        """Compute the weights from the losses, once there are labels of both kinds."""
        cdef Py_ssize_t e
        cdef double rarer = min(self.labels[0], self.labels[1]), least = 0.0, total = 0.0
        for e in range(self.n):
            self.trust[e] = 0.0
            if rarer > 0.0:
                self.trust[e] = 0.5 * (self.loss[e] / self.labels[0] + self.loss[self.n + e] / self.labels[1])
            if e == 0 or self.trust[e] < least:
                least = self.trust[e]
        for e in range(self.n):
            self.trust[e] = exp(-LEARNING * rarer * (self.trust[e] - least))
            self.weight[e] = self.prior[e] * self.trust[e]
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

    cdef double combined(self, bint has_rare) noexcept nogil:
        """Return the score; turn the surprises in `amount` into what each adds to it."""
        cdef Py_ssize_t e, largest = 0
        cdef double total = 0.0
        for e in range(1, self.n):
            if self.trust[e] * self.amount[e] > self.trust[largest] * self.amount[largest]:
                largest = e
        for e in range(self.n):
            self.amount[e] *= self.weight[e] + (SURE * self.trust[e] if e == largest else 0.0)
            total += self.amount[e]
        self.amount[self.n] *= ABSENCE if self.score[self.n] > UNUSUAL else 0.0
        self.amount[self.n + 1] *= RARITY if has_rare else 0.0
        return total + self.amount[self.n] + self.amount[self.n + 1]

    cdef void scores(self, View* v, double* out) noexcept nogil:
        cdef Py_ssize_t e
        for e in range(self.n + 1):
            self.components.scores(e, v, &self.score[e])
        self.score[self.n + 1] = self.absence.rarity(v)
        for e in range(self.n + 2):
            self.amount[e] = self.surprise(e, self.score[e])
        out[0] = self.combined(self.absence.has_rare_columns())

    cdef void learn(self, View* v, int y, double w) noexcept nogil:
        cdef double score
        self.learn_scored(v, y, w, &score, NULL)

    cdef void learn_scored(self, View* v, int y, double w, double* scores, double* probs) noexcept nogil:
        """Score the instance; keep the experts' scores, and let them learn it."""
        cdef Py_ssize_t e
        cdef bint has_rare = self.absence.has_rare_columns()
        self.score[self.n + 1] = self.absence.rarity(v)
        for e in range(self.n + 1):
            self.components.learn_scored(e, v, y, w, &self.score[e], NULL)
        for e in range(self.n + 2):
            self.amount[e] = self.surprise(e, self.score[e])
            (<keep_call> call_keep)(self.scored[e], self.score[e])
        scores[0] = self.combined(has_rare)

    cdef void contributions(self, View* v, int label, double* out) noexcept nogil:
        """Split each expert's surprise in proportion to what raises its score."""
        self.split(v, out)

    cdef dict absent_contributions(self, View* v, int label):
        """Return what experts add whose score no entry raises, and the parts of absent and of rare columns."""
        cdef double rest = self.split(v, self.part), total
        parts = {}
        for amount, columns in ((self.amount[self.n], self.absence.absent_contributions(v, label)),
                                (self.amount[self.n + 1], self.absence.present_parts(v))):
            total = sum(columns.values())
            if amount > 0.0 and total > 0.0:
                parts.update({key: amount * part / total for key, part in columns.items()})
            else:
                rest += amount
        if rest:
            parts[REST] = rest
        return parts

    cdef double split(self, View* v, double* out) noexcept nogil:
        """Write the parts of the entries; return what experts add whose score no entry raises."""
        cdef Py_ssize_t e, i
        cdef double total, rest = 0.0
        memset(out, 0, v.n * sizeof(double))
        self.scores(v, &total)
        for e in range(self.n):
            self.components.contributions(e, v, 0, self.share)
            total = 0.0
            for i in range(v.n):
                total += max(self.share[i], 0.0)
            if not total > 0.0:
                rest += self.amount[e]
            for i in range(v.n if total > 0.0 else 0):
                out[i] += self.amount[e] * (max(self.share[i], 0.0) / total)
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
