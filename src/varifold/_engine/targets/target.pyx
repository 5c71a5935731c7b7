"""Base class of targets: what a learner predicts, as the engine sees it.

A target holds the truth of the instance at hand and the prediction for it. For each instance the engine calls, in this
order, as far as they apply: `read` (of a block: `read_row` or `hide_truth`), `take_memo`, `reserve_label`, `predict` (or
`recall`), `add_label`, `learn` (or `predict_and_learn` in one pass), `write_row`. Only `read`, `take_memo`,
`reserve_label` and `begin_block` can fail; they change nothing that is saved.
"""

import numpy as np

from varifold._engine.data.block cimport Block
from varifold._engine.instance cimport Instance
from varifold._engine.models.model cimport Model

from varifold.errors import DataError


def checked_steps(Block block not None, steps):
    """Return a schedule (see Engine.run) as an int64 array; reject rows outside the block."""
    cdef Py_ssize_t n = len(block)
    steps = np.ascontiguousarray(steps, dtype=np.int64)
    if len(steps) and (steps.max() > n or steps.min() < -2 * n or (steps == 0).any()):
        raise DataError("a schedule names rows that are not in the block")
    return steps


cdef class Target:
    """Base of targets; this one predicts nothing."""

    cdef int attach(self, Instance instance, Model model) except -1:
        """Set the engine's instance and model; raise if this was done before."""
        if self.instance is not None:
            raise ValueError("the target belongs to another engine")
        self.instance = instance
        self.model = model
        self.has_truth = True
        return 0

    cdef bint sees_instance(self) noexcept nogil:
        """Return whether the model predicts and learns the instance at hand: not without a known feature."""
        return self.instance.n > 0 or self.model.sees_empty

    # ---------------------------------------------------------------- one instance

    cdef int begin(self, bint probabilities, bint bounds) except -1:
        """Set what predict() computes in addition to the prediction: probabilities, intervals or sets."""
        self.with_bounds = bounds
        return 0

    cdef int read(self, object y) except -1:
        """Keep y, the truth of a dict call, for learn(), and whether there is one; raise if it cannot be learned.

        This base class needs no truth.
        """
        return 0

    cdef int reserve_label(self) except -1 with gil:
        """Reserve memory for the new label at hand."""
        return 0

    cdef int add_label(self) except -1 with gil:
        """Add the new label at hand; reserve_label() was called before."""
        return 0

    cdef bint predicts_first(self) noexcept nogil:
        """Return whether the instance at hand is predicted before it is learned even if no prediction is requested."""
        return self.conformal is not None

    cdef void predict(self) noexcept nogil:
        """Predict the presented instance."""
        pass

    cdef void learn(self, double w) noexcept nogil:
        """Learn the presented instance with sample weight w > 0."""
        pass

    cdef void learn_unlabelled(self, double w) noexcept nogil:
        """Learn the presented instance, which has no truth, with sample weight w > 0."""
        if self.sees_instance():
            self.model.learn_unlabelled(&self.instance.view, w)

    cdef bint fuses(self) noexcept nogil:
        """Return whether predict_and_learn() can process the instance at hand."""
        return False

    cdef void predict_and_learn(self) noexcept nogil:
        """Predict the presented instance and learn it with weight 1 in one pass, to the same bits."""
        self.predict()
        self.learn(1.0)

    # ---------------------------------------------------------------- the memo of a prediction

    cdef Py_ssize_t memo_size(self, int classes) noexcept nogil:
        """Return how many numbers a memo has that was written when there were this many classes; 0: none is needed."""
        return 0

    cdef int memo_classes(self) noexcept nogil:
        """Return the number of classes at the last prediction, which a memo of a classifier starts with."""
        return 0

    cdef void write_memo(self, double* out) noexcept nogil:
        """Write what learn() judges the last prediction by."""
        pass

    cdef void recall(self, const double* memo) noexcept nogil:
        """Take what write_memo() wrote in place of a prediction, for learn()."""
        pass

    cdef object make_memo(self):
        """Return the memo of the last prediction as bytes; empty if none is needed."""
        cdef Py_ssize_t size = self.memo_size(self.memo_classes())
        cdef double[::1] out
        if size == 0:
            return b""
        numbers = np.zeros(size)
        out = numbers
        self.write_memo(&out[0])
        return numbers.tobytes() if np.isfinite(numbers).all() else b""

    cdef int classes_of(self, object numbers) except -2:
        """Return with how many classes a memo of these numbers was written; -1 if this learner cannot have written it."""
        return 0

    cdef int take_memo(self, object memo) except -1:
        """Keep a memo for recall(), or that there is none (None, empty); raise if this learner cannot have made it."""
        cdef int classes
        cdef Py_ssize_t size
        cdef const double[::1] held
        self.memo = NULL
        self.memo_held = None
        if memo is None or (type(memo) is bytes and len(memo) == 0):
            return 0
        if type(memo) is not bytes:
            raise DataError(f"the memo is {type(memo).__name__}; pass the bytes that memo_one() returned")
        size = len(memo) // 8
        numbers = np.frombuffer(memo[:8 * size])
        classes = self.classes_of(numbers)
        if classes < 0 or len(memo) != 8 * self.memo_size(classes) or not np.isfinite(numbers).all():
            raise DataError(f"the memo of {len(memo):,} bytes was not made by this learner; "
                            "pass what its memo_one() returned for the instance, or no memo")
        held = self.memo_held = numbers
        self.memo = &held[0]
        return 0

    # ---------------------------------------------------------------- the rows of a block

    cdef object schedule(self, Block block, object steps, bint learn):
        """Return the steps as an int64 array, empty if there is no schedule."""
        return np.zeros(0, dtype=np.int64) if steps is None else checked_steps(block, steps)

    cdef int begin_block(self, Block block, bint learn, bint predict, bint probabilities, bint bounds) except -1:
        """Prepare to read a block's truths and to write the outputs that are requested."""
        raise NotImplementedError

    cdef void read_row(self, Py_ssize_t row) noexcept nogil:
        """Read the truth of a row, and whether there is one."""
        pass

    cdef void hide_truth(self) noexcept nogil:
        """Instead of read_row(): the truth of the row at hand is not known. This base class needs none."""
        pass

    cdef void write_row(self, Py_ssize_t row) noexcept nogil:
        """Write the last prediction to the outputs of a row."""
        pass

    cdef object end_block(self):
        """Return the outputs, each None unless it was requested."""
        raise NotImplementedError

    # ---------------------------------------------------------------- what the last prediction was

    cdef object prediction(self):
        """Return the last prediction as a Python object."""
        raise NotImplementedError

    cdef object probabilities(self):
        """Return its probabilities by label."""
        raise TypeError(f"{type(self).__name__} has no probabilities")

    cdef object margins(self):
        """Return its scores by label."""
        raise TypeError(f"{type(self).__name__} has no margins")

    cdef object bounds(self):
        """Return its sets or intervals by coverage, ascending."""
        raise TypeError(f"{type(self).__name__} has no bounds")

    cdef object explain(self, int c):
        """Return the contributions to it by name."""
        raise TypeError(f"{type(self).__name__} has no explanations")

    cdef tuple contributions(self, int c):
        """Return what adds to the score of class c (0 for a regressor): by feature, by other names, the intercept.

        Other names, such as "x (absent)", may equal those of features.
        """
        cdef Py_ssize_t i
        cdef double intercept = 0.0
        cdef double[::1] share = np.zeros(max(1, self.instance.view.n))
        cdef dict parts = {}
        cdef dict others = {}
        self.model.contributions(&self.instance.view, c, &share[0])
        for i in range(self.instance.view.n):
            if self.instance.view.slot[i] == 0:
                intercept = share[i]
            else:
                parts[<object> self.instance.space.key[self.instance.view.slot[i]]] = share[i]
        for key, part in self.model.absent_contributions(&self.instance.view, c).items():
            if type(key) is int:
                parts[self.instance.space.name_of(key)] = part
            else:
                name = key if type(key) is str else f"{self.instance.space.name_of(key[0])} ({key[1]})"
                others[name] = others.get(name, 0.0) + part  # the absences of the features 1 and "1" share a name
        return parts, others, intercept

    cdef dict nbytes(self):
        """Return bytes of state by part."""
        return {} if self.conformal is None else {"conformal": self.conformal.nbytes()}

    # ---------------------------------------------------------------- files

    cdef list label_list(self):
        """Return the labels in the order of their classes."""
        return []

    cdef dict dump(self):
        """Return the state as arrays by name."""
        return {}

    cdef int check(self, list labels, dict arrays) except -1:
        """Reject labels and arrays that dump() cannot have returned."""
        if labels:
            raise ValueError(f"{len(labels)} labels for a learner that has none")
        return 0

    cdef int fill(self, list labels, dict arrays) except -1:
        """Restore what dump() returned, which was checked."""
        return 0
