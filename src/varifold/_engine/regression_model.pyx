"""The base of regression methods, and the running statistics of the target; the contract stands in the .pxd file."""

import numpy as np

from libc.math cimport sqrt

from varifold._engine.model cimport Model
from varifold._engine.view cimport View

from varifold._engine.state import checked_array


cdef class Target:
    """Running weight, mean and deviation of the targets learned (Welford)."""

    cdef void absorb(self, double y, double w) noexcept nogil:
        """Let a target join the statistics."""
        cdef double weight = self.weight + w
        cdef double d = y - self.mean
        self.mean += d * (w / weight)
        self.squares = min(self.squares + d * w * (y - self.mean), 1e300)
        self.weight = weight
        self.deviation = sqrt(self.squares / weight) if self.squares > 0.0 else 0.0

    def dump(self):
        """Weight, mean and squares as an array."""
        return np.array([self.weight, self.mean, self.squares])

    def fill(self, dict arrays):
        """Take what dump() gave, under the name `target`."""
        numbers = checked_array(arrays, "target", "f", (3,))
        if not (numbers[0] >= 0.0 and numbers[2] >= 0.0 and abs(numbers[1]) <= 1e150):
            raise ValueError(f"target statistics of {numbers.tolist()}")
        self.weight, self.mean, self.squares = numbers.tolist()
        self.deviation = sqrt(self.squares / self.weight) if self.squares > 0.0 and self.weight > 0.0 else 0.0


cdef class RegressionModel(Model):
    """A regression method's mathematics over slots and values; this one predicts the mean of the targets learned."""

    cdef int attach_target(self, Target target) except -1:
        """Take the statistics of the targets, which the engine keeps."""
        self.target = target
        return 0

    cdef double predict(self, View* v) noexcept nogil:
        """The prediction, in the target's own units."""
        return self.target.mean

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        """Learn the target y with sample weight w > 0; `target` has taken y in already."""
        pass

    def dump(self, Py_ssize_t size):
        return self.arrays.dump(size, 1)

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, 1)
        self.grow(capacity)


# ---------------------------------------------------------------- for models made of others

cdef double call_predict(RegressionModel m, View* v) noexcept nogil:
    return m.predict(v)


cdef void call_learn_target(RegressionModel m, View* v, double y, double w) noexcept nogil:
    m.learn_target(v, y, w)


cdef RegressionCalls regression_calls() noexcept:
    """The functions above, for `RegressionCalls`."""
    cdef RegressionCalls calls
    calls.predict = <predict_call> call_predict
    calls.learn = <learn_target_call> call_learn_target
    return calls
