"""Base class of learners and transformers: parameters, features, files, pickles and copies."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from river import base as river_base

from varifold._engine.engine import Engine
from varifold._engine.models.model import Model
from varifold._engine.models.python_rule import PythonModel
from varifold.base import files
from varifold.base.nested import pack_params, unpack_params
from varifold.base.params import Constraint
from varifold.base.registry import detectors, models, transformers
from varifold.base.saving import Saved
from varifold.base.traits import Feature
from varifold.errors import DataError, ModelFileError, UnknownNameError

Name = str | int
E = TypeVar("E", bound="Estimator")
P = ParamSpec("P")
R = TypeVar("R")


def undisturbed(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Guard a method that reads the state in several steps: a call from another thread raises `BusyLearnerError`."""

    @functools.wraps(method)
    def guarded(self: E, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._engine:
            return method(self, *args, **kwargs)

    return guarded


class Estimator(Saved, river_base.Estimator):
    """An object with declared parameters and one engine that holds all of its state.

    A subclass supplies ``_parameters`` (its constraints), an ``__init__`` that stores the parameters and sets
    ``_engine``, and ``_make_engine``.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {}
    _engine: Engine
    reading: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def _constraints(cls) -> dict[str, Constraint]:
        merged: dict[str, Constraint] = {}
        for parent in reversed(cls.__mro__):
            merged.update(parent.__dict__.get("_parameters", {}))
        return merged

    def _make_engine(self) -> Engine:
        """Make a new engine with this object's parameters."""
        raise NotImplementedError(f"{type(self).__name__} must define _make_engine()")

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a new object with the same parameters, or with these instead, that has learned nothing."""
        return super().clone(_for_river(new_params or {}), include_attributes)

    def _get_params(self) -> dict[str, Any]:
        return _for_river(super()._get_params())

    # ------------------------------------------------------------------ looking inside

    @property
    def steps(self) -> int:
        """Instances learned so far."""
        return int(self._engine.step)

    @property
    @undisturbed
    def features(self) -> dict[Name, Feature]:
        """Known features: first and last seen (steps count from 1), count, weight and role of each."""
        return self._describe_features(self._engine.space.live())

    @undisturbed
    def _latest_features(self, most: int) -> dict[Name, Feature]:
        """Return the features that were seen last, at most `most`."""
        space = self._engine.space
        slots = space.live()
        if len(slots) > most:
            latest = np.argsort(-space.seen_table()[slots, 1], kind="stable")[:most]
            slots = np.sort(np.array(slots)[latest]).tolist()
        return self._describe_features(slots)

    def _describe_features(self, slots: list[int]) -> dict[Name, Feature]:
        engine = self._engine
        space = engine.space
        table = space.seen_table()[slots].tolist()
        described = {}
        for slot, (first, last, count) in zip(slots, table, strict=True):
            column = space.column_of(slot)
            described[space.name_of(slot)] = Feature(
                first_seen=first,
                last_seen=last,
                count=count,
                weight=engine.magnitude(slot),
                role=engine.role(slot),
                column=None if column == slot else space.name_of(column),
            )
        return described

    def _knows(self, column: Name) -> bool:
        """Return whether a column was learned, of numbers or of strings."""
        return int(self._engine.space.id_of(column)) >= 0

    def rename(self, names: Mapping[Name, Name]) -> None:
        """Rename features and keep all that was learned about them: ``rename({"temp": "temp_v2"})``.

        The levels of a column of strings are renamed with it. A feature that already has one of the new names loses its
        state. Two names may be exchanged. Files keep the new names. If any of the names is wrong, nothing changes.
        """
        if not isinstance(names, Mapping):
            raise DataError(f"rename takes a mapping {{old name: new name}}. Got a {type(names).__name__} instead.")
        try:
            self._rename(dict(names), partial=False)
        except UnknownNameError as error:
            for old, new in names.items():
                if not self._knows(old) and isinstance(new, str | int) and self._knows(new):
                    raise UnknownNameError(
                        f"{error}, but there is {new!r}: the old name comes first, {{{new!r}: {old!r}}} "
                        f"(--rename {new}={old})"
                    ) from None
            raise

    def _rename(self, names: dict[Name, Name], partial: bool) -> int:
        """Rename, ignoring unknown names if `partial`; return the number of slots with a new name."""
        for rule in _python_rules(self._engine.model):
            raise DataError(
                f"this {type(self).__name__} holds a {type(rule.learner).__name__}, which knows features by their "
                "names; they cannot be renamed"
            )
        renamed: int = self._engine.rename(names, partial)
        return renamed

    @undisturbed
    def state_bytes(self) -> dict[str, int]:
        """Return the bytes of state by part; the name objects themselves are not counted."""
        held: dict[str, int] = self._engine.nbytes()
        return held

    # ------------------------------------------------------------------ pickles and copies

    def __getstate__(self) -> dict[str, Any]:
        attributes = {key: value for key, value in self.__dict__.items() if key != "_engine"}
        state = {"attributes": attributes, "engine": self._engine.dump()}
        learners = [copy.deepcopy(rule.learner) for rule in _python_rules(self._engine.model)]
        return {**state, "python": learners} if learners else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["attributes"])
        self._engine = self._make_engine()
        names, labels, arrays = state["engine"]
        # a pickle mapped into memory (joblib's mmap_mode) holds arrays that cannot be written to
        self._engine.fill(names, labels, {name: np.require(array, requirements="W") for name, array in arrays.items()})
        for rule, learner in zip(_python_rules(self._engine.model), state.get("python", []), strict=True):
            rule.replace(learner)

    # ------------------------------------------------------------------ files and bytes

    def _header(self) -> dict[str, Any]:
        """Return method and parameters, as a model file names them."""
        cls = type(self)
        known = (registry.name_of(cls) for registry in (models, detectors, transformers))
        name = next(filter(None, known), f"{cls.__module__}:{cls.__qualname__}")
        return {"method": name, "params": pack_params(self)}

    def _apply_header(self, header: Mapping[str, Any]) -> None:
        """Apply what a header states beyond the parameters; called before the state is restored."""

    def _content(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return the header and the arrays of a model file; they hold all of the state."""
        for rule in _python_rules(self._engine.model):
            raise ModelFileError(
                f"this {type(self).__name__} holds a {type(rule.learner).__name__}, a Python object that a model file "
                "cannot hold; pickle the learner instead"
            )
        names, labels, arrays = self._engine.dump()
        header = {**self._header(), "labels": [files.pack_label(y) for y in labels]}
        return header, {**files.pack_names(names), **arrays}

    @classmethod
    def _from_content(cls, header: Mapping[str, Any], arrays: files.Arrays) -> Self:
        """Make a learner of what `_content` returned; raise ValueError or KeyError if it does not fit together."""
        made = cls(**unpack_params(header["params"]))
        made._apply_header(header)
        state = {name: a for name, a in arrays.items() if not name.startswith("names.")}
        made._engine.fill(files.unpack_names(arrays), [files.unpack_label(y) for y in header["labels"]], state)
        _check_same_arrays(made._engine.dump()[2], state)
        return made


def _check_same_arrays(held: files.Arrays, given: files.Arrays) -> None:
    """Raise ValueError unless the arrays that an engine holds have the names, types and shapes of those given to it."""
    if held.keys() != given.keys():
        raise ValueError(f"arrays that do not belong to it: {sorted(held.keys() ^ given.keys())}")
    for name, array in given.items():
        like = held[name]
        if (array.dtype, array.shape) != (like.dtype, like.shape):
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {like.dtype} {like.shape}")


def _python_rules(model: Model) -> Iterator[PythonModel]:
    """Yield the Python learners in a model, at any depth; its arrays do not hold them."""
    if isinstance(model, PythonModel):
        yield model
    for part in ("base", "rule"):
        inner = getattr(model, part, None)
        if isinstance(inner, Model):
            yield from _python_rules(inner)


def _for_river(params: dict[str, Any]) -> dict[str, Any]:
    """Replace empty tuples by lists: river looks for a class in the first element of a tuple."""
    return {name: [] if isinstance(value, tuple) and not value else value for name, value in params.items()}
