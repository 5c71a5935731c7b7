"""Base class for a regression method's mathematics.

A method derives from `RegressionModel`, declares its arrays in ``__cinit__`` (see `State`) and writes

- ``predict(v)``: the prediction of a presented instance, in the target's own units. It changes nothing, never sees new
  slots, and is finite;
- ``learn_target(v, y, w)``: learn the target y, finite and within 1e150, with sample weight w > 0. `target` holds the
  running statistics of all targets, y included: weight, mean and deviation (0 while all were equal);
- ``contributions(v, 0, out)`` and optionally ``absent_contributions(v, 0)``: what each entry of the view, and what
  absent features, add to the prediction. Together they sum to ``predict(v) - target.mean``; the engine adds the mean
  to the intercept;
- ``magnitude(slot)``: how much a slot contributes, at least 0;
- ``forget(slot)``, ``grow(capacity)``, ``prepare(slots, n, n_new, 0)``, ``dump`` and ``fill``, if the declared arrays
  are not all of the state.

Memory is allocated in ``grow`` and ``prepare`` only (set `prepares` for the second), which may raise MemoryError and
change nothing that is visible from outside. ``predict`` and ``learn_target`` run without the interpreter lock and
cannot fail.

*Scale.* Targets are scaled online as inputs are: a method whose steps depend on the size of an error divides it by
``target.deviation``. What it keeps stays in the target's units, so that a prediction does not change because the
statistics do. Learning a y + b instead of y, with a > 0, must result in a times the prediction plus b, up to rounding;
`varifold.checks` compares that.

*Empty instances.* The engine predicts the target's mean for an instance without known features and does not show it to
the model, unless the model sets `sees_empty`. Before the first target the prediction is 0.

A model made of others holds them (see `Model`) and calls their ``attach_target``, ``predict`` and ``learn_target``.
"""

from varifold._engine.models.model cimport Model, Components
from varifold._engine.view cimport View


cdef class TargetStatistics:
    cdef readonly double weight        # summed sample weights
    cdef readonly double mean
    cdef readonly double squares       # weighted sum of squared deviations from the mean
    cdef readonly double deviation     # its root, per weight; 0 while all targets were equal

    cdef void absorb(self, double y, double w) noexcept nogil


cdef class RegressionModel(Model):
    cdef readonly TargetStatistics target

    cdef int attach_target(self, TargetStatistics target) except -1
    cdef double predict(self, View* v) noexcept nogil
    cdef void learn_target(self, View* v, double y, double w) noexcept nogil


# A component of a model that is made of regression models, without the GIL.
cdef double predict_component(Components components, int i, View* v) noexcept nogil
cdef void learn_component(Components components, int i, View* v, double y, double w) noexcept nogil


cdef inline double scaled_error(TargetStatistics target, double error) noexcept nogil:
    """Return an error in deviations of the target, within 1e12, so that sums of them stay finite."""
    if target.deviation <= 0.0:
        return 0.0
    error /= target.deviation
    return 1e12 if error > 1e12 else -1e12 if error < -1e12 else error
