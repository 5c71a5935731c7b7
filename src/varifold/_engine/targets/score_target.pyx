"""The target of detectors, which learn without labels: their prediction is an anomaly score."""

cimport cython
import numpy as np

from varifold._engine.conformal.alarms cimport Alarms
from varifold._engine.data.block cimport Block
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport Model
from varifold._engine.targets.target cimport Target

from varifold._engine.state import checked_array


@cython.final
cdef class ScoreTarget(Target):
    """No truth. The prediction is the model's score: the larger, the more unusual; 0 without a known feature.

    The model's `scores` writes one number. An instance is scored before it is learned, and its p-value is computed from
    the scores before it. When the model scores an instance that it is about to learn, new features are already admitted;
    their state is that of unused slots, which must not change the score.
    """

    cdef readonly Alarms alarms
    cdef double score
    cdef double p
    # the block at hand
    cdef double* out_scores      # [row]
    cdef double* out_p           # [row], or NULL

    def __cinit__(self):
        self.alarms = Alarms()

    cdef int attach(self, Instance instance, Model model) except -1:
        """Set the engine's instance and model, for which all instances are of one class."""
        Target.attach(self, instance, model)
        model.reserve_class()
        model.add_class()
        return 0

    # ---------------------------------------------------------------- one instance

    cdef void predict(self) noexcept nogil:
        self.score = 0.0
        if self.sees_instance():
            self.model.scores(&self.instance.view, &self.score)
        if self.with_bounds:
            self.p = self.alarms.p_value(self.score)

    cdef void learn(self, double w) noexcept nogil:
        cdef double score = 0.0
        if self.sees_instance():
            self.model.learn_scored(&self.instance.view, 0, w, &score, NULL)
            self.alarms.observe(score)

    cdef bint fuses(self) noexcept nogil:
        return True

    cdef void predict_and_learn(self) noexcept nogil:
        self.score = 0.0
        if self.sees_instance():
            self.model.learn_scored(&self.instance.view, 0, 1.0, &self.score, NULL)
        if self.with_bounds:
            self.p = self.alarms.p_value(self.score)
        if self.sees_instance():
            self.alarms.observe(self.score)

    # ---------------------------------------------------------------- the rows of a block

    cdef int begin_block(self, Block block, bint learn, bint predict, bint probabilities, bint bounds) except -1:
        cdef Py_ssize_t n = len(block)
        cdef double[:, ::1] out
        self.begin(False, bounds)
        arrays = np.full((2, max(1, n)), np.nan)
        out = arrays
        self.out_scores = &out[0, 0]
        self.out_p = &out[1, 0] if bounds else NULL
        self.outputs = (arrays[0, :n] if predict else None, arrays[1, :n] if bounds else None)
        return 0

    cdef void write_row(self, Py_ssize_t row) noexcept nogil:
        self.out_scores[row] = self.score
        if self.out_p != NULL:
            self.out_p[row] = self.p

    cdef object end_block(self):
        """Return (scores, NaN for rows not scored; p-values)."""
        outputs = self.outputs
        self.outputs = None
        return outputs

    # ---------------------------------------------------------------- what the last prediction was

    cdef object prediction(self):
        return self.score

    cdef object bounds(self):
        """Return the p-value."""
        return self.p

    cdef object explain(self, int c):
        """Return contributions by feature and by other names, which together sum to the score."""
        if not self.sees_instance():
            return {}, {}
        parts, others, _ = self.contributions(0)
        return parts, others

    cdef dict nbytes(self):
        return {"alarms": self.alarms.nbytes()}

    # ---------------------------------------------------------------- files

    cdef dict dump(self):
        return {"alarms." + key: array for key, array in self.alarms.dump().items()}

    cdef int check(self, list labels, dict arrays) except -1:
        checked_array(arrays, "model.classes", "i", (1,), 1, 1)
        return Target.check(self, labels, arrays)

    cdef int fill(self, list labels, dict arrays) except -1:
        self.alarms.fill({key[7:]: array for key, array in arrays.items() if key.startswith("alarms.")})
        return 0
