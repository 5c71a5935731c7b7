"""Learners of CapyMOA (MOA in Java): the schema of the stream in advance, categories as nominal attributes."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from river import base

from varifold.bench.peers.columns import Floats, Frequencies, InAdvance, needs
from varifold.errors import ParameterError

__all__ = ["Classifier", "Detector", "Regressor", "SemiSupervised"]

CLASSIFIERS = {
    "arf": ("AdaptiveRandomForestClassifier", {"ensemble_size": 10, "random_seed": 1}),
    "srp": ("StreamingRandomPatches", {"ensemble_size": 10, "random_seed": 1}),
    "sgbt": ("StreamingGradientBoostedTrees", {"random_seed": 1}),
    "samknn": ("SAMkNN", {"random_seed": 1}),
}
"""Learners by name, with parameters other than the defaults: 100 trees, the default of forests, take too long here."""
SEMI_SUPERVISED = {"sleade": ("SLEADE", {"random_seed": 1}), "osnn": ("OSNN", {"seed": 1})}
"""Learners of `capymoa.ssl`. OSNN distinguishes two labels and needs values without gaps: ``means=True``."""
REGRESSORS = {
    "arf": ("AdaptiveRandomForestRegressor", {"ensemble_size": 10, "random_seed": 1}),
    "soknl": ("SOKNL", {"ensemble_size": 10, "random_seed": 1}),
    "sgbr": ("StreamingGradientBoostedRegression", {"random_seed": 1}),
}

DETECTORS = {
    "oif": ("OnlineIsolationForest", {"random_seed": 1}),
    "aif": ("AdaptiveIsolationForest", {"seed": 1}),
}


class _Moa(InAdvance):
    """Schema of a stream, and its rows as MOA needs them.

    Parameters
    ----------
    name
        Which learner.
    data
        Name of the data set, for its columns, categories and labels.
    means
        Fill absent values with means so far; otherwise they are NaN, MOA's missing value.

    """

    name: str
    means: bool
    _module: ClassVar[str]
    _known: ClassVar[Mapping[str, Any]]

    def _start(self, name: str, data: str, means: bool) -> None:
        if name not in self._known:
            raise ParameterError(f"name must be one of {', '.join(self._known)}. Got {name!r} instead.")
        needs("capymoa", self)
        if shutil.which("java") is None:
            raise ParameterError("CapyMOA needs Java 17, and there is no command `java`")
        self.name, self.data, self.means = name, data, means

    @cached_property
    def schema(self) -> Any:
        """Schema of CapyMOA."""
        from capymoa.stream import Schema

        levels = {name: [str(i) for i in range(len(each))] for name, each in self.arrays.schema.levels.items()}
        labels = self.arrays.schema.labels
        target = {"(target)": [str(i) for i in range(len(labels))]} if labels else {}
        return Schema.from_custom([*self.arrays.names, "(target)"], "(target)", {**levels, **target}, self.data)

    @cached_property
    def model(self) -> Any:
        """Learner; it is made on first use, since it needs the schema."""
        return self._made()

    def _made(self) -> Any:
        name, parameters = self._known[self.name]
        return getattr(importlib.import_module(f"capymoa.{self._module}"), name)(schema=self.schema, **parameters)

    def _row(self, x: Mapping[Any, Any], learned: bool) -> Floats:
        row = self.arrays.row(x)
        if not self.means:
            return row
        if learned:
            self.filler.learn(row)
        return self.filler.filled(row)

    def memory_elsewhere(self) -> int:
        """Return the bytes in use on the heap of Java."""
        import jpype

        runtime = jpype.java.lang.Runtime.getRuntime()
        jpype.java.lang.System.gc()
        return int(runtime.totalMemory() - runtime.freeMemory())


class Classifier(_Moa, base.Classifier):
    """A classifier of CapyMOA; where it returns no votes, the shares of the labels so far."""

    _multiclass = True
    takes_strings = True
    _module, _known = "classifier", CLASSIFIERS

    def __init__(self, name: str, data: str, means: bool = False) -> None:
        self._start(name, data, means)
        self.frequencies = Frequencies()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn one instance."""
        from capymoa.core import LabeledInstance

        self.frequencies.learn(y)
        code = self.arrays.schema.labels.index(y)
        self.model.train(LabeledInstance.from_array(self.schema, self._row(x, True), code))

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the probabilities by label."""
        from capymoa.core import Instance

        votes = self.model.predict_proba(Instance.from_array(self.schema, self._row(x, False)))
        if votes is None:
            return self.frequencies.shares()
        return dict(zip(self.arrays.schema.labels, np.ravel(votes).tolist(), strict=False))


class SemiSupervised(Classifier):
    """A classifier of CapyMOA that also learns instances without a label."""

    learns_unlabelled = True
    _module, _known = "ssl", SEMI_SUPERVISED

    @cached_property
    def model(self) -> Any:
        """Return the learner; OSNN is for two labels."""
        if self.name == "osnn" and len(self.arrays.schema.labels) != 2:
            raise ParameterError(f"OSNN distinguishes two labels; {self.data} has {len(self.arrays.schema.labels)}")
        return self._made()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn one instance, also without a label."""
        from capymoa.core import Instance

        if y is None:
            self.model.train_on_unlabeled(Instance.from_array(self.schema, self._row(x, True)))
        else:
            super().learn_one(x, y)


class Regressor(_Moa, base.Regressor):
    """A regressor of CapyMOA."""

    takes_strings = True
    _module, _known = "regressor", REGRESSORS

    def __init__(self, name: str, data: str, means: bool = False) -> None:
        self._start(name, data, means)

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn one instance."""
        from capymoa.core import RegressionInstance

        self.model.train(RegressionInstance.from_array(self.schema, self._row(x, True), y))

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Predict the target; 0 where there is no prediction."""
        from capymoa.core import RegressionInstance

        prediction = self.model.predict(RegressionInstance.from_array(self.schema, self._row(x, False), 0.0))
        return 0.0 if prediction is None else float(prediction)


class Detector(_Moa, base.AnomalyDetector):
    """An anomaly detector of CapyMOA; absent values are the means so far, since none accepts NaN."""

    _module, _known = "anomaly", DETECTORS

    def __init__(self, name: str, data: str) -> None:
        self._start(name, data, True)

    def _instance(self, x: Mapping[Any, Any], learned: bool) -> Any:
        from capymoa.core import LabeledInstance

        return LabeledInstance.from_array(self.schema, self._row(x, learned), 0)

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance."""
        self.model.train(self._instance(x, True))

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the anomaly score."""
        return float(self.model.score_instance(self._instance(x, False)))
