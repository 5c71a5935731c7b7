"""Merge learners that learned different parts of a stream into one that has learned all of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from varifold._engine.merging import (
    APPROXIMATE,
    EXACT,
    Arrays,
    Dump,
    Part,
    Union,
    merged_moments,
    merged_ranges,
    merged_robust,
    scale_of,
    total,
)
from varifold.base.estimator import Estimator
from varifold.base.learner import is_regressor
from varifold.base.nested import pack_params
from varifold.errors import DataError, ParameterError
from varifold.forest._tdigest import TDigest

__all__ = ["APPROXIMATE", "EXACT", "merge"]

T = TypeVar("T", Estimator, TDigest)


def merge(learners: Iterable[T]) -> T:
    """Merge learners into a new one that holds what all of them have learned; the originals do not change.

    The learners are of one class with the same options, and each has learned another part of the stream. Features and
    labels are matched by name. `learner.traits.merging` describes the result:

    - ``"exact"`` (`GaussianNB`, `NB3`): up to rounding, the result equals a learner that learned all parts one after
      the other. So do scales, class counts and feature counts of every method.
    - ``"approximate"`` (`AROW`, `Additive`, `PA`, `OGD`, `FOBOS`, `FTRLProximal`, `FTRLADP`, `OLSF`, `OLVF`, `OVFM`,
      `CopulaImputer`): Gaussians over weights are multiplied (their natural parameters add up), other weights are
      averaged by how often each learner saw the feature, correlations of a copula by how often it saw both, its windows
      are filled with values of all.
    - ``None``: the states cannot be combined. Use `Vote`, which averages the predictions of any classifiers.

    Merge once, when all parts are learned. Continuing from a merged learner in several places and merging again,
    repeatedly, makes an approximate merge worse, not better, because the past then counts once per part: on spambase in
    8 parts, half of the values removed, the accuracy of AROW is 87.2 % when merged once and 82.6 % when merged ten
    times.

    Digests (`TDigest`) are merged as well.

    Examples
    --------
    >>> import varifold
    >>> parts = [varifold.GaussianNB() for _ in range(2)]
    >>> for step in range(100):
    ...     parts[step % 2].learn_one({"load": step % 7, "part": "ab"[step % 3 == 0]}, step % 7 > 3)
    >>> whole = varifold.merge(parts)
    >>> whole.steps, whole.traits.merging
    (100, 'exact')

    """
    if not isinstance(learners, Iterable):
        raise ParameterError(f"merge takes a list of learners. Got {learners!r} instead.")
    parts: list[Any] = list(learners)
    if not parts:
        raise ParameterError("merge takes at least one learner. Got none.")
    if all(isinstance(part, TDigest) for part in parts):
        return _merged_digests(parts)  # type: ignore[return-value]
    return _merged_learners(parts)  # type: ignore[return-value]


def _merged_digests(parts: Sequence[TDigest]) -> TDigest:
    merged = copy.deepcopy(parts[0])
    for part in parts[1:]:
        merged.merge(copy.deepcopy(part))  # merging sorts the buffer of the other digest
    return merged


def _merged_learners(parts: Sequence[Estimator]) -> Estimator:
    _check_alike(parts)
    merged = parts[0].clone()
    learned = [part for part in parts if part.steps]
    if len({id(part) for part in learned}) < len(learned):
        raise ParameterError("merge takes each learner once: what it has learned would count twice")
    if len(learned) == 1:
        return copy.deepcopy(learned[0])
    if learned:
        with np.errstate(over="ignore", invalid="ignore"):  # fill() rejects what is not finite
            state = merged_state([part._engine.dump() for part in learned], merged._engine, _scale(merged))
        try:
            merged._engine.fill(*state)
        except ValueError as error:
            raise DataError(
                f"these {type(merged).__name__}s cannot be merged: {error}; they learned values of too different sizes"
            ) from error
        merged._engine.shrink()
    readings = [part.reading for part in parts]
    if readings[0] and all(reading == readings[0] for reading in readings):
        merged.reading = dict(readings[0])
    return merged


def _scale(learner: Estimator) -> str:
    return str(getattr(learner, "scale", "none"))


def _check_alike(parts: Sequence[Any]) -> None:
    first = parts[0]
    for place, part in enumerate(parts, start=1):
        if not isinstance(part, Estimator):
            raise ParameterError(
                f"merge takes learners of this library. Got a {type(part).__name__} at place {place}; Vote([...]) "
                "takes any classifier"
            )
        if type(part) is not type(first):
            raise ParameterError(
                f"merge takes learners of one class. Got a {type(first).__name__} first and a {type(part).__name__} at "
                f"place {place}; Vote([...]) takes learners of several classes"
            )
        _check_options(pack_params(first), pack_params(part), type(first).__name__, place)
    if first._engine.model.merging() is None:
        instead = "" if is_regressor(first) else "; Vote([...]) predicts with all of them"
        raise ParameterError(f"{type(first).__name__} has no state that adds up, so it cannot be merged{instead}")
    if getattr(first, "coverages", ()):
        raise ParameterError(
            f"{type(first).__name__}s with coverages={first.coverages!r} cannot be merged: each measured the errors of "
            "its own predictions, and the merged learner predicts differently. Make them with coverages=()"
        )


def _check_options(first: Mapping[str, Any], other: Mapping[str, Any], owner: str, place: int) -> None:
    for name, value in first.items():
        if other[name] != value:
            raise ParameterError(
                f"merge takes learners with the same options. Got {owner}s whose {name!r} is {value!r} first and "
                f"{other[name]!r} at place {place}"
            )


def merged_state(dumps: Sequence[Dump], engine: Any, scale: str) -> Dump:
    """Merge the states of several engines, each of which has learned something."""
    union = Union(dumps)
    engines = [
        Part(union, n, arrays, arrays["space.seen"][:, 2], int(arrays["step"][0]))
        for n, (_, _, arrays) in enumerate(dumps)
    ]
    scaler = _merged_scales(engines, scale)
    found: Arrays = {
        **union.arrays(),
        "space.seen": _merged_occurrences(engines),
        "space.evictions": total([part.arrays["space.evictions"] for part in engines]),
        **{key: part.arrays[key] for part in engines for key in ("space.waiting",) if key in part.arrays},
        "scaler": scaler,
        "step": total([part.arrays["step"] for part in engines]),
    }
    if all("counts" in part.arrays for part in engines):  # otherwise there are no labels
        found["counts"] = total([part.by_class("counts") for part in engines])
        if "calibration" in engines[0].arrays:  # of several learners it starts again
            alone = engines[0].arrays["calibration"]
            found["calibration"] = alone if len(dumps) == 1 else engine.target.new_calibration(len(union.labels))
        found["model.classes"] = np.array([len(union.labels)], dtype=np.int64)
    models = [_model_part(part, scaler, scale) for part in engines]
    found |= {f"model.{name}": array for name, array in engine.model.merge(models).items()}
    return union.names, union.labels, found


def _model_part(whole: Part, scaler: Any, scale: str) -> Part:
    """Return the arrays of the model alone, with the scale that its weights belong to."""
    part = whole.inner("model.", scaled=False)
    if scale != "none":
        part.set_scale(scale_of(whole.by_slot("scaler"), scale), scale_of(scaler, scale))
    return part


def _merged_occurrences(parts: Sequence[Part]) -> Any:
    """Merge first seen, last seen and count, as if the parts had followed each other."""
    merged = np.zeros((parts[0].union.size, 3), dtype=np.int64)
    before = 0
    for part in parts:
        seen = part.by_slot("space.seen")
        there = seen[:, 2] > 0
        fresh = there & (merged[:, 2] == 0)
        merged[fresh, 0] = before + seen[fresh, 0]
        merged[there, 1] = before + seen[there, 1]
        merged[:, 2] += seen[:, 2]
        before += int(part.arrays["step"][0])
    return merged


def _merged_scales(parts: Sequence[Part], scale: str) -> Any:
    if scale == "none":
        return np.zeros((0, 3))
    tables = np.moveaxis(np.stack([part.by_slot("scaler") for part in parts]), -1, 0)
    if scale == "robust":
        return np.stack(merged_robust(*tables), axis=-1)
    combine = merged_moments if scale == "standard" else merged_ranges
    return np.stack(combine(*tables), axis=-1)
