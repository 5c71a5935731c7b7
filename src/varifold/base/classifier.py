"""The contract: one class that every method of the library is."""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from river import base as river_base

from varifold._engine.block import Block
from varifold._engine.classify import Engine
from varifold._engine.model import Model
from varifold.base import files
from varifold.base.blocks import to_block
from varifold.base.nested import pack_params, unpack_params
from varifold.base.params import AnyOf, Boolean, Constraint, Integer, OneOf, Real, validate
from varifold.base.registry import models
from varifold.base.traits import Feature, Traits
from varifold.errors import ModelFileError, ParameterError, UnknownNameError

Name = str | int
Instance = Mapping[Any, Any]
INTERCEPT = "(intercept)"


class VaryingClassifier(river_base.Classifier):
    """A classifier for streams whose features appear and vanish.

    An instance is a mapping of feature names (str or int) to values. A missing key, None and NaN all mean *absent*;
    0.0 is a value; a str value ``v`` of feature ``f`` is the indicator feature ``f=v``. Features and labels are never
    declared: both are met on the way. A learner is for one thread at a time; to predict from many, give each a copy.

    A method supplies ``_parameters`` (its constraints), an ``__init__`` that stores them and calls this one,
    ``_model`` (its compiled mathematics) and, when it has forms to be checked besides the default, river's hook
    ``_unit_test_params`` (yields their parameters).

    Parameters
    ----------
    scale
        ``"standard"`` (running mean and deviation of the observed values), ``"minmax"`` (running range) or ``"none"``.
    fit_intercept
        Whether a constant, always present input is added.
    clip
        Bound on the absolute value of a standardised input.
    max_features
        Most features kept; None keeps all that ever come.
    evict
        Which go first when there are more: the ``"oldest"`` (last seen longest ago) or the ``"lightest"`` (smallest
        weights). A sixteenth of the bound is given up at a time.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "scale": OneOf("standard", "minmax", "none"),
        "fit_intercept": Boolean(),
        "clip": Real(0, open_low=True),
        "max_features": AnyOf(Integer(1), None),
        "evict": OneOf("oldest", "lightest"),
    }
    _cost: ClassVar[str] = "O(present)"
    _native_multiclass: ClassVar[bool] = False
    _uses_absence: ClassVar[bool] = False
    _uses_values: ClassVar[bool] = True
    _before: ClassVar[dict[str, Any]] = {}  # parameters younger than some model files, as those files mean them

    _paper: ClassVar[dict[str, Any]] = {}  # parameters that make the method as its paper has it, nothing added

    def __init__(
        self,
        *,
        scale: str = "standard",
        fit_intercept: bool = True,
        clip: float = 3.0,
        max_features: int | None = None,
        evict: str = "oldest",
    ) -> None:
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.clip = clip
        self.max_features = max_features
        self.evict = evict
        validate(type(self).__name__, self._constraints(), self.__dict__)
        self._engine = self._make_engine()

    @classmethod
    def as_in_paper(cls, **params: Any) -> Self:
        """The method as its paper has it, with these parameters: nothing that the library adds.

        Values are not scaled, there is no intercept unless the paper has one, and no majority bias or presence learner.
        Scale the data as the paper does. A method that is of no paper refuses.
        """
        return cls(**{**cls._paper_params(), **params})

    @classmethod
    def _paper_params(cls) -> dict[str, Any]:
        own = [parent.__dict__["_paper"] for parent in reversed(cls.__mro__) if parent.__dict__.get("_paper")]
        if not own:
            raise ParameterError(f"{cls.__name__} is of no paper, so that there is no form of it as in a paper")
        return {name: value for part in own for name, value in part.items()}

    @classmethod
    def _constraints(cls) -> dict[str, Constraint]:
        merged: dict[str, Constraint] = {}
        for parent in reversed(cls.__mro__):
            merged.update(parent.__dict__.get("_parameters", {}))
        return merged

    def _model(self) -> Model:
        """A new compiled model of this method with this learner's parameters."""
        raise NotImplementedError(f"{type(self).__name__} must define _model()")

    def _make_engine(self) -> Engine:
        return Engine(
            self._model(),
            scale=self.scale,
            clip=self.clip,
            intercept=self.fit_intercept,
            max_features=self.max_features,
            evict=self.evict,
        )

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Instance, y: Hashable, w: float = 1.0) -> None:
        """Learn one labelled instance with sample weight w (0 does nothing)."""
        self._engine.learn_one(x, y, w)

    def predict_one(self, x: Instance) -> Any:  # type: ignore[override]  # river's **kwargs mean nothing here
        """The label of an instance; None before any label was learned. Changes nothing."""
        return self._engine.predict_one(x)

    def predict_proba_one(self, x: Instance) -> dict[Any, float]:  # type: ignore[override]
        """Probability by label; empty before any label was learned. Changes nothing."""
        return self._engine.predict_proba_one(x)

    def margins_one(self, x: Instance) -> dict[Any, float]:
        """Signed score by label, the largest being the answer. Changes nothing."""
        return self._engine.margins_one(x)

    def explain_one(self, x: Instance, label: Hashable = None) -> dict[Name, float]:
        """What each feature present adds to a label's score, largest first.

        The values sum to ``margins_one(x)[label]``; the label is the predicted one unless given. What no feature
        brings (the intercept) stands under ``"(intercept)"``.
        """
        index = -1
        if label is not None:
            if label not in self.classes:
                raise UnknownNameError(f"the label {label!r} has not been learned; known labels: {self.classes!r}")
            index = self.classes.index(label)
        _, parts, rest = self._engine.explain_one(x, index)
        ordered: dict[Name, float] = dict(sorted(parts.items(), key=lambda item: -abs(item[1])))
        if rest != 0.0:
            ordered[INTERCEPT] = ordered.get(INTERCEPT, 0.0) + rest
        return ordered

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> None:
        """Learn instances in order, without the interpreter between them.

        X is a Block (which carries its labels), an iterable of dicts, a data frame (pandas, polars, pyarrow), a SciPy
        sparse matrix or a 2-D array. The state afterwards is the same to the last bit as after `learn_one` on each.
        """
        self._engine.run(to_block(X, y, w), predict=False)

    def predict_many(self, X: Any) -> list[Any]:
        """What `predict_one` gives for each instance."""
        codes, _ = self._engine.run(to_block(X), learn=False, probabilities=False)
        return self._engine.labels_of(codes)

    def predict_proba_many(self, X: Any) -> list[dict[Any, float]]:
        """What `predict_proba_one` gives for each instance."""
        block = to_block(X)
        labels = self.classes
        if not labels:
            return [{} for _ in range(len(block))]
        _, probabilities = self._engine.run(block, learn=False)
        return [dict(zip(labels, row, strict=True)) for row in probabilities.tolist()]

    def predict_learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> list[Any]:
        """Predict each instance, then learn it: the prequential loop, compiled. Returns the predictions."""
        codes, _ = self._engine.run(to_block(X, y, w), probabilities=False)
        return self._engine.labels_of(codes)

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Predict and learn a block, for evaluation: indices into `classes` (-1: none yet) and probabilities.

        A schedule (int64: i + 1 predicts row i, -(i + 1) learns it) lets labels arrive late.
        """
        codes, probabilities = self._engine.run(block, schedule=schedule)
        return codes, probabilities

    # ------------------------------------------------------------------ looking inside

    @property
    def classes(self) -> list[Any]:
        """Labels in the order in which they were met."""
        return list(self._engine.labels)

    @property
    def steps(self) -> int:
        """Instances learned so far."""
        return int(self._engine.step)

    @property
    def features(self) -> dict[Name, Feature]:
        """Every feature known: first and last seen (steps count from 1), count and weight."""
        engine = self._engine
        seen = engine.space.seen_table().tolist()
        return {
            engine.space.name_of(slot): Feature(
                first_seen=seen[slot][0],
                last_seen=seen[slot][1],
                count=seen[slot][2],
                weight=engine.magnitude(slot),
                role=engine.model.role(slot),
            )
            for slot in engine.space.live()
        }

    @property
    def traits(self) -> Traits:
        """What the learner can do, what it costs, and what it wants to say now."""
        notes = tuple(self._engine.model.notes())
        if self.max_features is None:
            notes += ("memory grows with every new feature; max_features bounds it",)
        return Traits(
            multiclass="native" if self._native_multiclass else "one-vs-rest",
            cost=self._cost,
            bounded_memory=self.max_features is not None,
            uses_absence=self._uses_absence,
            uses_values=self._uses_values,
            randomized="seed" in inspect.signature(type(self)).parameters,
            notes=notes,
        )

    @property
    def _multiclass(self) -> bool:
        return True

    def state_bytes(self) -> dict[str, int]:
        """Bytes of state held, by part; the name objects themselves are not counted."""
        held: dict[str, int] = self._engine.nbytes()
        return held

    # ------------------------------------------------------------------ keeping and copying

    def _header(self) -> dict[str, Any]:
        """What a file says of the learner besides its arrays."""
        name = models.name_of(type(self)) or f"{type(self).__module__}:{type(self).__qualname__}"
        return {"method": name, "params": pack_params(self)}

    def __getstate__(self) -> dict[str, Any]:
        state = {key: value for key, value in self.__dict__.items() if key != "_engine"}
        return {"attributes": state, "engine": self._engine.dump()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["attributes"])
        self._engine = self._make_engine()
        self._engine.fill(*state["engine"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to exactly this path; the file is whole or not there at all."""
        names, labels, arrays = self._engine.dump()
        header = self._header()
        header["labels"] = [files.pack_label(y) for y in labels]
        files.write(path, header, {**files.pack_names(names), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The learner that `save` wrote; it continues as if it had never stopped. Loading runs no code."""
        header, arrays = files.read(path)
        try:
            learner: Self = _made_from(header, cls, path)
            files.restore(learner._engine, header, arrays)
        except ModelFileError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"{path} does not hold a whole {header.get('method')!r}: {error!r}") from error
        return learner


def _made_from(header: dict[str, Any], cls: type[Any], path: str | os.PathLike[str]) -> Any:
    """A new learner of the class and parameters that a file's header names."""
    method = header["method"]
    if method in models:
        found = models[method]
    elif cls is not VaryingClassifier and method == f"{cls.__module__}:{cls.__qualname__}":
        found = cls
    else:
        raise ModelFileError(f"{path} holds a {method!r}, which is not registered here; use its class's load()")
    if not issubclass(found, cls):
        raise ModelFileError(f"{path} holds a {found.__name__}, not a {cls.__name__}")
    return found(**{**found._before, **unpack_params(header["params"])})


def load(path: str | os.PathLike[str]) -> VaryingClassifier:
    """The learner in a model file, of whatever registered method it is."""
    return VaryingClassifier.load(path)
