"""PythonRule: a classifier written in plain Python, driven by the same engine as the compiled methods."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from varifold._engine.models.python_rule import RuleModel
from varifold.base.classifier import VaryingClassifier
from varifold.errors import DataError, ModelFileError, ParameterError

Name = str | int
Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass_transform(eq_default=False)
class PythonRule(VaryingClassifier):
    """Base class of classifiers written in plain Python.

    A subclass writes `start`, `learn` and `scores`. The engine does the rest: names, strings (as indicators ``f=v``),
    absent values, scaling, labels that come late, `max_features`, blocks and data frames, checks of the input. The
    subclass is a learner like any other: `varifold.checks.check_learner` checks it, and ``--model module:Class`` runs
    it in ``varifold run`` and ``varifold bench``.

    The annotated attributes of a subclass are its parameters; their constraints may be listed in ``_parameters``. The
    learned state is kept in attributes that `start` sets; these are not annotated in the class.

    Parameters
    ----------
    scale, fit_intercept, clip, max_features, evict, objective, costs, calibrate, coverages
        See `VaryingClassifier`. With `fit_intercept` every instance holds ``"(intercept)": 1.0``.

    Notes
    -----
    Pickles and copies include all attributes. `save` needs `dump` and `fill`, because loading a model file runs no code
    that the file holds; without them it raises ModelFileError. `varifold.load` finds registered classes
    (``varifold.models.register``); any other class loads its own files with its ``load``.

    An exception in `learn` or `scores`, KeyboardInterrupt included, stops the call or the block at that instance and
    propagates. The engine has then counted an instance that `learn` did not finish; what `learn` changed stays.

    *Cost.* One dict and one Python call per instance, 5 to 50 times that of a compiled method.

    Examples
    --------
    >>> from varifold import PythonRule
    >>> class Perceptron(PythonRule):
    ...     rate: float = 1.0
    ...     def start(self):
    ...         self.weights = {}
    ...     def scores(self, x):
    ...         return {y: sum(w.get(f, 0.0) * v for f, v in x.items()) for y, w in self.weights.items()}
    ...     def learn(self, x, y, w):
    ...         self.weights.setdefault(y, {})
    ...         margins = self.scores(x)
    ...         predicted = max(margins, key=margins.get)
    ...         if predicted != y:
    ...             for f, v in x.items():
    ...                 for label, sign in ((y, 1.0), (predicted, -1.0)):
    ...                     weights = self.weights[label]
    ...                     weights[f] = weights.get(f, 0.0) + sign * w * self.rate * v
    >>> model = Perceptron(rate=0.5)
    >>> for step in range(100):
    ...     model.learn_one({"heat": step % 10, "fan": "on"}, "hot" if step % 10 > 4 else "cold")
    >>> model.predict_many([{"heat": 1.0}, {"heat": 9.0, "noise": 3.0}])
    ['cold', 'hot']

    """

    _native_multiclass: ClassVar[bool] = True
    _cost: ClassVar[str] = "that of its learn() and scores(), in Python"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        missing = [
            name for name in ("start", "learn", "scores") if getattr(type(self), name) is getattr(PythonRule, name)
        ]
        if missing:
            names = " and ".join(f"{name}()" for name in missing)
            raise ParameterError(f"{type(self).__name__} is a PythonRule without {names}; define what PythonRule names")
        super().__post_init__()
        self.start()

    # ------------------------------------------------------------------ what a subclass writes

    def start(self) -> None:
        """Initialise the attributes that hold the learned state, before the first instance."""
        raise NotImplementedError

    def learn(self, x: dict[Name, float], y: Any, w: float) -> None:
        """Learn an instance with label y and weight w > 0.

        x holds the scaled values of the present features by name, new features included.
        """
        raise NotImplementedError

    def scores(self, x: dict[Name, float]) -> dict[Any, float]:
        """Return the score of each label; the largest is predicted, probabilities are the softmax. Must change nothing.

        x is as in `learn`, without unknown features. Scores must be finite; a missing label has score 0.
        """
        raise NotImplementedError

    def forget(self, name: Name) -> None:
        """Drop the state of a feature that is evicted (`max_features`). Does nothing by default."""

    def renamed(self, names: dict[Name, Name]) -> None:
        """Move the state of renamed features ({old: new}, levels of columns included) to their new names.

        Without it, `rename` raises DataError.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define renamed()")

    def weight(self, name: Name) -> float:
        """Return the size of a feature's state, for `features` and ``evict="lightest"``; 0 by default."""
        return 0.0

    def explain(self, x: dict[Name, float], label: Any) -> dict[Name, float]:
        """Return the contributions of features to the label's score, for `explain_one`; the rest is the intercept."""
        return {}

    def dump(self) -> tuple[Arrays, Any]:
        """Return the learned state for a model file: arrays of finite numbers by name, and a JSON value."""
        raise NotImplementedError(f"{type(self).__name__} does not define dump()")

    def fill(self, arrays: Arrays, data: Any) -> None:
        """Restore what `dump` returned; called after `start`, when `classes` is known.

        The arrays come from a file, which may hold anything: raise ValueError if they do not fit.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define fill()")

    # ------------------------------------------------------------------ what the engine needs

    def _model(self) -> RuleModel:
        return RuleModel(self)

    def _rename(self, names: dict[Name, Name], partial: bool) -> int:
        if type(self).renamed is PythonRule.renamed:
            raise DataError(f"{type(self).__name__} knows features by their names; define renamed() to rename them")
        space = self._engine.space
        changes, _ = space.renaming(names, partial)
        moved = {space.name_of(slot): name for slot, name in changes.items()}
        renamed = super()._rename(names, partial)
        self.renamed(moved)
        return renamed

    @classmethod
    def _saves(cls) -> bool:
        """Return whether the class can be saved in a model file."""
        return cls.dump is not PythonRule.dump and cls.fill is not PythonRule.fill

    def _header(self) -> dict[str, Any]:
        if not self._saves():
            raise ModelFileError(
                f"{type(self).__name__} keeps what it learned in Python objects, which a model file cannot hold; "
                "define dump() and fill(), or pickle the learner instead"
            )
        return super()._header()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)
