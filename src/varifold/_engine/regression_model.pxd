"""What a regression method must answer to be driven by the engine.

A method derives from `RegressionModel`, declares its arrays in ``__cinit__`` (see `State`) and writes

- ``predict(v)``: the prediction of a presented instance, in the target's own units. It changes nothing, never sees new
  slots, and is finite;
- ``learn_target(v, y, w)``: learn the target y, finite and within 1e150, with sample weight w > 0. `target` holds the
  running statistics of all targets, y included: weight, mean and deviation (0 while all were equal);
- ``contributions(v, 0, out)`` and optionally ``absent_contributions(v, 0)``: what each entry of the view, and what
  absent features, add to the prediction. Together they sum to ``predict(v) - target.mean``; the engine adds the mean
  to the intercept;
- ``magnitude(slot)``: how much the model makes of a slot, at least 0;
- ``forget(slot)``, ``grow(capacity)``, ``prepare(slots, n, n_new, 0)``, ``dump`` and ``fill``, where the declared arrays
  do not do it all.

Memory is taken in ``grow`` and ``prepare`` only (set `prepares` for the second), which may raise MemoryError and change
nothing that anybody can see. ``predict`` and ``learn_target`` run without the interpreter lock and cannot fail.

*Scale.* Targets are scaled online as inputs are: a method whose steps depend on the size of an error divides it by
``target.deviation``. What it keeps stays in the target's units, so that a prediction does not change because the
statistics do. Learning a y + b instead of y, with a > 0, must give a times the prediction plus b, up to rounding;
`varifold.checks` compares that.

*Empty instances.* The engine answers an instance without known features with the target's mean and does not show it to
the model, unless the model sets `sees_empty`. Before the first target the answer is 0.

A model made of others calls their ``attach``, ``attach_target``, ``grow``, ``forget``, ``predict`` and ``learn_target``.
"""

from varifold._engine.model cimport Model
from varifold._engine.view cimport View


cdef class Target:
    cdef readonly double weight        # summed sample weights
    cdef readonly double mean
    cdef readonly double squares       # weighted sum of squared deviations from the mean
    cdef readonly double deviation     # its root, per weight; 0 while all targets were equal

    cdef void absorb(self, double y, double w) noexcept nogil


cdef class RegressionModel(Model):
    cdef readonly Target target

    cdef int attach_target(self, Target target) except -1
    cdef double predict(self, View* v) noexcept nogil
    cdef void learn_target(self, View* v, double y, double w) noexcept nogil


# Function-pointer forms, so that a model made of others can call them without the GIL.
ctypedef double (*predict_call)(void*, View*) noexcept nogil
ctypedef void (*learn_target_call)(void*, View*, double, double) noexcept nogil

cdef struct RegressionCalls:
    predict_call predict
    learn_target_call learn

cdef RegressionCalls regression_calls() noexcept


cdef inline double scaled_error(Target target, double error) noexcept nogil:
    """An error in deviations of the target, within 1e12, so that what is summed of them stays finite."""
    if target.deviation <= 0.0:
        return 0.0
    error /= target.deviation
    return 1e12 if error > 1e12 else -1e12 if error < -1e12 else error
