"""Base of regression methods, and the running statistics of the target; the .pxd file describes the contract."""

import numpy as np

from libc.math cimport sqrt

from varifold._engine.models.model cimport Model, Components
from varifold._engine.names.reading cimport LARGEST
from varifold._engine.view cimport View

from varifold._engine.state import checked_array


cdef class TargetStatistics:
    """Running weight, mean and deviation of the targets learned (Welford)."""

    cdef void absorb(self, double y, double w) noexcept nogil:
        """Update the statistics with a target."""
        cdef double weight = self.weight + w
        cdef double d = y - self.mean
        self.mean = min(max(self.mean + d * (w / weight), -LARGEST), LARGEST)  # rounding may lead beyond them
        # the product is below 0 if a mean of tiny weight is rounded past y
        self.squares = min(self.squares + max(d * w * (y - self.mean), 0.0), 1e300)
        self.weight = weight
        self.deviation = sqrt(self.squares / weight) if self.squares > 0.0 else 0.0

    def dump(self):
        """Return weight, mean and squares as an array."""
        return np.array([self.weight, self.mean, self.squares])

    def fill(self, dict arrays):
        """Restore what dump() returned, from the array `target`."""
        numbers = checked_array(arrays, "target", "f", (3,))
        if not (numbers[0] >= 0.0 and numbers[2] >= 0.0 and abs(numbers[1]) <= LARGEST):
            raise ValueError(f"target statistics of {numbers.tolist()}")
        self.weight, self.mean, self.squares = numbers.tolist()
        self.deviation = sqrt(self.squares / self.weight) if self.squares > 0.0 and self.weight > 0.0 else 0.0


cdef class RegressionModel(Model):
    """A regression method's mathematics over slots and values; this one predicts the mean of the targets learned."""

    cdef int attach_target(self, TargetStatistics target) except -1:
        """Use these statistics of the targets, which the engine updates."""
        self.target = target
        return 0

    cdef double predict(self, View* v) noexcept nogil:
        """Return the prediction, in the target's units."""
        return self.target.mean

    cdef void learn_target(self, View* v, double y, double w) noexcept nogil:
        """Learn the target y with sample weight w > 0; `target` includes y already."""
        pass

    def dump(self, Py_ssize_t size):
        return {**self.arrays.dump(size, 1), **({} if self.components is None else self.components.dump(size))}

    def fill(self, dict arrays, Py_ssize_t capacity):
        self.arrays.fill(arrays, self.space.size if self.alone else -1, capacity, 1)
        if self.components is not None:
            self.components.fill(arrays, capacity)
        self.grow(capacity)


# ---------------------------------------------------------------- models made of models

ctypedef double (*predict_call)(void*, View*) noexcept nogil
ctypedef void (*learn_target_call)(void*, View*, double, double) noexcept nogil


cdef double call_predict(RegressionModel m, View* v) noexcept nogil:
    return m.predict(v)


cdef void call_learn_target(RegressionModel m, View* v, double y, double w) noexcept nogil:
    m.learn_target(v, y, w)


cdef double predict_component(Components components, int i, View* v) noexcept nogil:
    """Predict with a component, which is a RegressionModel."""
    return (<predict_call> call_predict)(components.inner[i], v)


cdef void learn_component(Components components, int i, View* v, double y, double w) noexcept nogil:
    """Let a component, which is a RegressionModel, learn."""
    (<learn_target_call> call_learn_target)(components.inner[i], v, y, w)
