"""Target of classifiers: labels, their counts, the decision between them, and sets of labels."""

cimport cython
import zlib
from math import fsum

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from varifold._engine.data.block cimport Block
from varifold._engine.conformal.levels cimport Conformal
from varifold._engine.targets.calibration cimport (
    BIAS_VARIANCE, CALIBRATION_NUMBERS, Calibration, calibrate, calibration_agree, calibration_is_due,
    calibration_learn, calibration_start, is_calibrated,
)
from varifold._engine.targets.decision cimport MOST_PROBABLE, Decision
from varifold._engine.models.model cimport NEW_LABEL, NO_LABEL
from varifold._engine.targets.target cimport Target
from varifold._numeric.activation cimport argmax
from varifold._numeric.memory cimport resize

from varifold._engine.state import checked_array
from varifold._engine.names.vocabulary import is_missing, plain_label
from varifold.errors import DataError

INTERCEPT = "(intercept)"

cdef enum:
    HEAD = 3    # numbers of a memo before those of the parts: classes, whether there are logits, checksum of the labels


@cython.final
cdef class ClassTarget(Target):
    """Labels in the order in which they were first learned; a class is a label's place there.

    Before any label there is no prediction. An instance without known features is predicted from the label counts,
    unless the model predicts it itself. With a `Conformal`, sets of labels are predicted too.
    """

    cdef readonly list labels
    cdef dict index                      # label -> class
    cdef readonly Decision decision      # how the prediction follows from the probabilities
    cdef Py_ssize_t capacity             # labels there is memory for
    cdef double* counts                  # [class] weight learned
    cdef double* label_sum               # [class] checksum of the labels up to this one
    # the instance at hand
    cdef object new_label                # of a dict call, while y is -1
    cdef int code                        # its label in the block at hand; -1 in a dict call
    cdef int known                       # classes when it was predicted
    cdef int predicted                   # class, -1 before any label
    cdef bint with_probabilities
    cdef double* scores                  # [class]
    cdef double* chances                 # [class] probabilities
    # their calibration
    cdef Calibration calibration
    cdef double* bias                    # [class]
    cdef double* bias_variance           # [class]
    cdef double* raw_chances             # [class] probabilities of the model
    cdef double* logit                   # [class]
    cdef double* calibrated              # [class] calibrated probabilities
    cdef readonly bint calibrates        # probabilities are calibrated
    cdef bint has_logits                 # those of the instance at hand are computed
    # the block at hand
    cdef tuple block_labels
    cdef const int32_t* codes            # [row]
    cdef int32_t* class_of               # [code] class, -1 for a label that has not been learned
    cdef Py_ssize_t width                # labels that there is a column for
    cdef int32_t* out_class
    cdef double* out_chances
    cdef unsigned char* out_sets

    def __cinit__(self, Decision decision=None, Conformal conformal=None, bint calibrates=False):
        self.calibrates = calibrates
        calibration_start(&self.calibration)
        self.decision = Decision() if decision is None else decision
        self.conformal = conformal
        self.labels = []
        self.index = {}
        self.code = -1
        self.reserve_labels(2)

    def __dealloc__(self):
        free(self.counts)
        free(self.label_sum)
        free(self.scores)
        free(self.chances)
        free(self.bias)
        free(self.bias_variance)
        free(self.raw_chances)
        free(self.logit)
        free(self.calibrated)

    # ---------------------------------------------------------------- labels

    cdef int reserve_labels(self, Py_ssize_t labels) except -1:
        """Reserve memory for this many labels."""
        cdef Py_ssize_t i, capacity = 2 * labels
        cdef double** arrays[9]
        if labels <= self.capacity:
            return 0
        self.decision.reserve(capacity)
        arrays[:] = [&self.scores, &self.chances, &self.counts, &self.label_sum,
                     &self.bias, &self.bias_variance, &self.raw_chances, &self.logit, &self.calibrated]
        for i in range(9 if self.calibrates else 4):    # the last five are of the calibration
            if resize(<void**> arrays[i], capacity * sizeof(double)) < 0:
                raise MemoryError
        self.capacity = capacity
        return 0

    cdef int reserve_label(self) except -1 with gil:
        # the label's checksum and costs are computed here, since its own code may run and raise
        cdef Py_ssize_t k = len(self.labels)
        if self.code >= 0:
            self.new_label = self.block_labels[self.code]
        self.reserve_labels(k + 1)
        self.sum_label(k, self.new_label)
        self.decision.look_up([*self.labels, self.new_label], k)
        self.model.reserve_class()
        return 0

    cdef int add_label(self) except -1 with gil:
        cdef int k = <int> len(self.labels)
        self.index[self.new_label] = k       # first, since the label's own code may run and raise
        self.labels.append(self.new_label)
        self.counts[k] = 0.0
        if self.calibrates:
            self.bias[k] = 0.0
            self.bias_variance[k] = BIAS_VARIANCE
        self.model.add_class()
        self.y = k
        self.new_label = None
        if self.code >= 0:
            self.class_of[self.code] = k
        return 0

    # ---------------------------------------------------------------- one instance

    cdef int begin(self, bint probabilities, bint bounds) except -1:
        self.code = -1
        self.with_bounds = bounds
        self.with_probabilities = probabilities or bounds or self.decision.kind != MOST_PROBABLE
        return 0

    cdef int read(self, object y) except -1:
        """Find the class of a label; a new one is kept; raise if it cannot be a label."""
        cdef object known = None
        try:
            known = self.index.get(y)
        except TypeError:  # it cannot be hashed, which plain_label() reports
            pass
        self.has_truth = known is not None or not is_missing(y)
        if not self.has_truth:
            self.y = NO_LABEL
            return 0
        if known is None:
            self.new_label = plain_label(y, self.instance.space.step + 1)
            known = self.index.get(self.new_label)
        self.y = NEW_LABEL if known is None else <int> known
        return 0

    cdef bint predicts_first(self) noexcept nogil:
        return self.conformal is not None or self.is_due()

    cdef bint is_due(self) noexcept nogil:
        """Return whether the calibration learns from the instance at hand."""
        return self.calibrates and calibration_is_due(&self.calibration, self.instance.space.step)

    cdef void predict(self) noexcept nogil:
        self.known = self.model.classes
        self.predicted = -1
        self.has_logits = False
        if self.known == 0:
            return
        self.score()
        if self.with_probabilities or self.with_memo or self.is_due():
            self.to_probabilities()
        self.choose()
        if self.with_bounds:
            self.bound()

    cdef void learn(self, double w) noexcept nogil:
        if self.sees_instance():
            self.model.learn(&self.instance.view, self.y, w)
        self.count(w)

    cdef bint fuses(self) noexcept nogil:
        return self.y >= 0 and self.instance.n > 0 and self.model.classes > 1

    cdef void predict_and_learn(self) noexcept nogil:
        cdef bint with_chances = self.with_probabilities or self.is_due()
        self.known = self.model.classes
        self.model.learn_scored(&self.instance.view, self.y, 1.0, self.scores, self.chances if with_chances else NULL)
        if with_chances and self.calibrates:
            self.calibrate_chances()
        self.choose()
        if self.with_bounds:
            self.bound()
        self.count(1.0)

    cdef int memo_classes(self) noexcept nogil:
        return self.known

    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil:
        cdef Py_ssize_t model = self.model.memo_size(classes)
        if model == 0 and self.conformal is None and not self.calibrates:
            return 0
        return HEAD + (classes if self.calibrates else 0) + model + (
            0 if self.conformal is None else classes + self.conformal.memo_size())

    cdef int classes_of(self, object numbers) except -2:
        """Return the number of classes that a memo starts with, if its labels are the first ones of this learner."""
        cdef Py_ssize_t known
        if len(numbers) < HEAD or not 0.0 <= numbers[0] <= len(self.labels):
            return -1
        known = int(numbers[0])
        if numbers[0] != known or numbers[2] != (self.label_sum[known - 1] if known else 0.0):
            return -1
        return <int> known

    cdef int sum_label(self, Py_ssize_t k, object y) except -1:
        """Compute the checksum of the labels up to this one, by which a memo of other labels is rejected."""
        text = repr(y).encode("utf-8", "surrogatepass")
        self.label_sum[k] = zlib.crc32(text, <unsigned int> self.label_sum[k - 1] if k else 0)
        return 0

    cdef void write_memo(self, double* out) noexcept nogil:
        cdef int k = self.known
        out[0] = k
        out[1] = self.has_logits
        out[2] = self.label_sum[k - 1] if k else 0.0
        out += HEAD
        if self.calibrates:
            if self.has_logits:
                memcpy(out, self.raw_chances, k * sizeof(double))
            out += k
        if self.conformal is not None:
            memcpy(out, self.chances, k * sizeof(double))
            self.conformal.write_memo(out + k)
            out += k + self.conformal.memo_size()
        if k:
            self.model.write_memo(out)

    cdef void recall(self, const double* memo) noexcept nogil:
        cdef int c, k = <int> memo[0]
        self.known = k
        self.has_logits = self.calibrates and k > 1 and memo[1] == 1.0
        memo += HEAD
        if self.calibrates:
            if self.has_logits:
                for c in range(k):
                    self.raw_chances[c] = min(max(memo[c], 0.0), 1.0)
                calibrate(&self.calibration, k, self.raw_chances, self.bias, self.logit, self.calibrated)
            memo += k
        if self.conformal is not None:
            for c in range(k):
                self.chances[c] = min(max(memo[c], 0.0), 1.0)
            self.conformal.read_memo(memo + k)
            memo += k + self.conformal.memo_size()
        self.model.read_memo(memo, k)

    cdef void score(self) noexcept nogil:
        """Score the presented instance by class; without a known feature by the counts."""
        cdef int c
        if self.sees_instance():
            self.model.scores(&self.instance.view, self.scores)
        else:
            for c in range(self.known):
                self.scores[c] = log(self.counts[c] + 1e-300)

    cdef void to_probabilities(self) noexcept nogil:
        """Turn the scores into probabilities."""
        cdef int c, k = self.known
        cdef double total = 0.0
        if not self.sees_instance():
            for c in range(k):
                total += self.counts[c]
            for c in range(k):
                self.chances[c] = self.counts[c] / total if total > 0.0 else 1.0 / k
        elif k == 1:
            self.chances[0] = 1.0
        else:
            self.model.proba(self.scores, self.chances)
            if self.calibrates:
                self.calibrate_chances()

    cdef void calibrate_chances(self) noexcept nogil:
        """Replace the model's probabilities by calibrated ones, if these have been better."""
        cdef Py_ssize_t size = self.known * sizeof(double)
        memcpy(self.raw_chances, self.chances, size)
        calibrate(&self.calibration, self.known, self.raw_chances, self.bias, self.logit, self.calibrated)
        if is_calibrated(&self.calibration):
            memcpy(self.chances, self.calibrated, size)
            calibration_agree(self.known, argmax(self.known, self.scores), self.chances)
        self.has_logits = True

    cdef void choose(self) noexcept nogil:
        """Decide for a class."""
        if self.decision.kind != MOST_PROBABLE:
            self.predicted = self.decision.choose(self.known, self.chances, self.counts)
        else:
            self.predicted = argmax(self.known, self.scores) if self.known > 1 else 0

    cdef void bound(self) noexcept nogil:
        """Find by coverage the largest score, one less its probability, that a label of the set may have."""
        self.conformal.expect(self.instance.slots + 1, self.instance.n, 0.0)
        self.conformal.bound_scores()

    cdef void count(self, double w) noexcept nogil:
        """Count the label that was learned, and how probable it was; no set can hold a new one."""
        if self.conformal is not None and self.known > 0:
            self.conformal.observe_label(self.instance.slots + 1, self.instance.n,
                                         1.0 - self.chances[self.y] if self.y < self.known else 1.0)
        if self.has_logits and self.y < self.known and self.is_due():
            calibration_learn(&self.calibration, self.known, self.raw_chances, self.logit, self.calibrated, self.bias,
                              self.bias_variance, self.y, w)
        self.has_logits = False
        self.counts[self.y] += w

    # ---------------------------------------------------------------- the rows of a block

    cdef object schedule(self, Block block, object steps, bint learn):
        if learn and block.targets is not None:
            raise DataError("the block holds numbers to predict, for a regressor; a classifier learns labels")
        return Target.schedule(self, block, steps, learn)

    cdef int begin_block(self, Block block, bint learn, bint predict, bint probabilities, bint bounds) except -1:
        cdef const int32_t[::1] codes = block.codes if len(block) else np.zeros(1, dtype=np.int32)
        cdef int32_t[::1] class_of, out_class
        cdef double[:, ::1] out_chances
        cdef unsigned char[:, :, ::1] out_sets
        cdef Py_ssize_t n = len(block)
        self.begin(probabilities, self.conformal is not None and (learn or bounds))
        self.block_labels = tuple(block.labels.values)
        if n and block.codes.max() >= len(self.block_labels):
            raise DataError("the labels of the block were cleared; its codes mean nothing any more")
        classes = np.array([self.index.get(y, -1) for y in self.block_labels] or [-1], dtype=np.int32)
        self.width = max(1, len(self.labels) + (np.count_nonzero(classes < 0) if learn else 0))
        predicted = np.full(max(1, n if predict else 0), -1, dtype=np.int32)
        chances = np.zeros((max(1, n if predict and probabilities else 0), self.width))
        sets = np.zeros((max(1, n if bounds else 0), self.conformal.k if bounds else 1, self.width), dtype=np.uint8)
        class_of, out_class, out_chances, out_sets = classes, predicted, chances, sets
        self.codes = &codes[0]
        self.class_of = &class_of[0]
        self.out_class = &out_class[0]
        self.out_chances = &out_chances[0, 0] if predict and probabilities else NULL
        self.out_sets = &out_sets[0, 0, 0] if bounds else NULL
        self.outputs = (block, classes, predicted[:n] if predict else None,
                        chances[:n] if predict and probabilities else None, sets[:n] if bounds else None)
        return 0

    cdef void read_row(self, Py_ssize_t row) noexcept nogil:
        self.code = self.codes[row]
        self.has_truth = self.code >= 0
        self.y = self.class_of[self.code] if self.has_truth else NO_LABEL

    cdef void hide_truth(self) noexcept nogil:
        self.has_truth = False
        self.y = NO_LABEL

    cdef void write_row(self, Py_ssize_t row) noexcept nogil:
        cdef int c, j
        cdef unsigned char* out
        self.out_class[row] = self.predicted
        if self.out_chances != NULL:
            memcpy(self.out_chances + row * self.width, self.chances, self.known * sizeof(double))
        if self.out_sets != NULL:
            for j in range(self.conformal.k):
                out = self.out_sets + (row * self.conformal.k + j) * self.width
                for c in range(self.known):
                    out[c] = 1.0 - self.chances[c] <= self.conformal.high[j]

    cdef object end_block(self):
        """Return (classes, -1 for none; probabilities, rows x labels; sets, rows x coverages x labels)."""
        if self.outputs is None:
            return None
        _, _, predicted, chances, sets = self.outputs
        self.outputs = self.block_labels = None
        self.code = -1
        return (predicted, None if chances is None else chances[:, :max(1, len(self.labels))],
                None if sets is None else sets[:, :, :len(self.labels)].astype(bool))

    # ---------------------------------------------------------------- what the last prediction was

    cdef object prediction(self):
        return self.labels[self.predicted] if self.predicted >= 0 else None

    cdef object probabilities(self):
        cdef int c
        return {self.labels[c]: self.chances[c] for c in range(self.known)}

    cdef object margins(self):
        cdef int c
        cdef double* margin = self.scores if self.decision.kind == MOST_PROBABLE else self.decision.margin
        return {self.labels[c]: margin[c] for c in range(self.known)}

    cdef object bounds(self):
        cdef int c, j
        return [{self.labels[c] for c in range(self.known) if 1.0 - self.chances[c] <= self.conformal.high[j]}
                for j in range(self.conformal.k)]

    cdef object explain(self, int c):
        """Return contributions by feature and by other names, which sum to the margin; c = -1: of the prediction."""
        cdef dict parts = {}
        cdef dict others = {}
        cdef double rest
        if self.known == 0:
            return parts, others
        if c >= self.known:
            raise IndexError(f"no label has the index {c}; there are {self.known}")
        c = self.predicted if c < 0 else c
        rest = self.scores[c]
        if self.sees_instance():
            parts, others, rest = self.contributions(c)
        if self.decision.kind != MOST_PROBABLE:
            likelihood, decided = self.decision.parts(c, self.scores[c], self.chances[c])
            if likelihood is not None:  # not rest + (likelihood - score), which loses the parts next to a large score
                rest = likelihood - fsum([*parts.values(), *others.values()])
            others.update(decided)
        if rest != 0.0:
            others[INTERCEPT] = others.get(INTERCEPT, 0.0) + rest
        return parts, others

    def labels_of(self, const int32_t[::1] classes):
        """Return the labels of classes, None for -1."""
        cdef list labels = [*self.labels, None]
        cdef Py_ssize_t i, k = len(self.labels)
        for i in range(classes.shape[0]):
            if classes[i] >= k:
                raise IndexError(f"no label has the index {classes[i]}; there are {k}")
        return [labels[classes[i] if classes[i] >= 0 else k] for i in range(classes.shape[0])]

    # ---------------------------------------------------------------- files

    def new_calibration(self, Py_ssize_t k):
        """Return what dump() returns of the calibration of k labels that has learned nothing."""
        cdef Calibration s
        calibration_start(&s)
        return np.array([s.factor, s.variance, s.gain, s.count, *[0.0] * k, *[BIAS_VARIANCE] * k])

    cdef list label_list(self):
        return list(self.labels)

    cdef dict dump(self):
        cdef Calibration s
        arrays = {"counts": np.array([self.counts[i] for i in range(len(self.labels))], dtype=np.float64)}
        if self.calibrates:
            s = self.calibration
            arrays["calibration"] = np.array([
                s.factor, s.variance, s.gain, s.count, *[self.bias[i] for i in range(len(self.labels))],
                *[self.bias_variance[i] for i in range(len(self.labels))]])
        return arrays

    cdef int check(self, list labels, dict arrays) except -1:
        cdef Py_ssize_t k = len(labels)
        if len(arrays["counts"]) != k or len(set(labels)) != k:
            raise ValueError(f"{k} labels for {len(arrays['counts'])} counts")
        checked_array(arrays, "counts", "f", (k,), 0)
        if self.calibrates:
            numbers = checked_array(arrays, "calibration", "f", (CALIBRATION_NUMBERS + 2 * k,))
            if numbers[:2].min() <= 0 or numbers[3] < 0 or (numbers[CALIBRATION_NUMBERS + k:] <= 0).any():
                raise ValueError("the calibration holds numbers that are not above 0")
        for key in arrays:
            if key.endswith(".classes"):
                checked_array(arrays, key, "i", (1,), 0, k)
        return 0

    cdef int fill(self, list labels, dict arrays) except -1:
        cdef Py_ssize_t i, k = len(labels)
        cdef Calibration* s
        self.reserve_labels(k)
        for i in range(k):
            self.counts[i] = arrays["counts"][i]
        if self.calibrates:
            numbers = arrays["calibration"]
            s = &self.calibration
            s.factor, s.variance, s.gain, s.count = numbers[:CALIBRATION_NUMBERS].tolist()
            for i in range(k):
                self.bias[i] = numbers[CALIBRATION_NUMBERS + i]
                self.bias_variance[i] = numbers[CALIBRATION_NUMBERS + k + i]
        self.labels = labels
        self.index = {y: i for i, y in enumerate(labels)}
        for i in range(k):
            self.sum_label(i, labels[i])
            self.decision.look_up(labels, i)
        return 0
