"""Merge learners: unite features and labels by name, and lay states out over them.

A model that can be merged returns EXACT or APPROXIMATE from `merging()`, and its arrays from `merge(parts)`. A `Part`
is one learner's state; it returns any array of it laid out over the united slots and classes, so that a model's `merge`
only combines numbers that belong together.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from varifold.errors import FeatureNameError

EXACT = "exact"
"""Merged learners equal one that learned all instances, up to rounding."""
APPROXIMATE = "approximate"
"""Merged learners approximate one that learned all instances."""

HINGE, LOGISTIC = 0.2, 0.05
"""Powers of `settle_intercept` for rules of either loss."""
INDICATOR = 4  # as in names.pxd
LARGEST = 1e300
WIDEST = 1e100  # ratio of two units of one feature, so that squares stay finite
SETTLED = 64.0  # as in robust.pxd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Name = str | int
Dump = tuple[list[Name | None], list[Any], Arrays]
"""Names by slot, labels and arrays, as an engine dumps them."""


class Union:
    """Features and labels of several engines, each once.

    `slots` and `classes` map the slots and classes of each engine to those of the union; -1 is a free slot.
    """

    def __init__(self, dumps: Sequence[Dump]) -> None:
        self.names: list[Name | None] = [None]
        self.labels: list[Any] = []
        self.kinds: list[int] = []
        self.columns: list[int] = [0]
        self._slot_of: dict[Name, int] = {}
        self.slots = [self._place(names, arrays) for names, _, arrays in dumps]
        self.classes = [self._classes(labels) for _, labels, _ in dumps]
        self.names[0] = dumps[0][0][0]

    @property
    def size(self) -> int:
        """Slots, that of the intercept included."""
        return len(self.names)

    @property
    def problems(self) -> int:
        """Problems of one-versus-rest."""
        return len(self.labels) if len(self.labels) > 2 else 1

    def arrays(self) -> Arrays:
        """Return kinds, columns and free slots, as a space dumps them."""
        return {
            "space.kind": np.array(self.kinds, dtype=np.uint8),
            "space.column": np.array(self.columns, dtype=np.int32),
            "space.free": np.zeros(0, dtype=np.int32),
        }

    def _place(self, names: list[Name | None], arrays: Arrays) -> Ints:
        kinds, columns = arrays["space.kind"].tolist(), arrays["space.column"].tolist()
        if not self.kinds:
            self.kinds = [kinds[0]]
        places = np.full(len(names), -1, dtype=np.int64)
        places[0] = 0
        for slot, name in enumerate(names):
            if slot and name is not None:
                places[slot] = self._slot(name)
        for slot in np.flatnonzero(places > 0).tolist():
            self._describe(int(places[slot]), kinds[slot], int(places[columns[slot]]))
        return places

    def _slot(self, name: Name) -> int:
        slot = self._slot_of.setdefault(name, len(self.names))
        if slot == len(self.names):
            self.names.append(name)
            self.kinds.append(0)
            self.columns.append(slot)
        return slot

    def _describe(self, slot: int, kind: int, column: int) -> None:
        """Record the kind of a slot; a level of a column in one learner must be one in all."""
        known = self.kinds[slot]
        if known and ((known ^ kind) & INDICATOR or (kind & INDICATOR and self.columns[slot] != column)):
            raise FeatureNameError(
                f"{self.names[slot]!r} is a value of a column in one learner and a feature (or a value of another "
                "column) in another; such learners cannot be merged: rename the feature"
            )
        self.kinds[slot] = known | kind
        self.columns[slot] = column

    def _classes(self, labels: list[Any]) -> Ints:
        index = {label: k for k, label in enumerate(self.labels)}
        for label in labels:
            if label not in index:
                index[label] = len(self.labels)
                self.labels.append(label)
        return np.array([index[label] for label in labels], dtype=np.int64)


class Scale(NamedTuple):
    """Offset and divisor that scale the values of each slot; 0 for a slot without statistics."""

    origin: Floats
    unit: Floats


def scale_of(table: Floats, kind: str) -> Scale:
    """Return the scale of a scaler's statistics."""
    weight, a, b = np.moveaxis(table, -1, 0)[:3]
    if kind == "minmax":
        return Scale(a, b - a)
    deviation = np.sqrt(np.divide(b, weight, out=np.zeros_like(b), where=weight > 0.0))
    return _robust_scale(table, deviation) if kind == "robust" else Scale(a, deviation)


def _robust_scale(table: Floats, deviation: Floats) -> Scale:
    """Return the scale of robust statistics: the commonest value is 1 where it means presence."""
    mean, mode, share = table[..., 1], table[..., 6], table[..., 7]
    is_presence = (mode != 0.0) & ((share >= 0.7) | (deviation == 0.0))
    width = np.where(deviation > 0.0, np.hypot(deviation, mean - mode), np.abs(mode))
    return Scale(np.where(is_presence, mode - width, mean), np.where(is_presence, width, deviation))


class Part:
    """One learner's share of a merge: its arrays, laid out over the united slots and classes on demand.

    `counts` is how many of its `steps` instances had each of the learner's slots. `set_scale` describes how its values
    were scaled, and how those of the merged learner are: a weight belongs to a scaled value.
    """

    def __init__(self, union: Union, number: int, arrays: Arrays, counts: Ints, steps: int) -> None:
        self.arrays = arrays
        self.union = union
        self.steps = steps
        self._counts = counts
        self._stretch: Floats = np.ones(union.size)
        self._shift: Floats = np.zeros(union.size)
        self._to = union.slots[number]
        self._classes = union.classes[number]

    def inner(self, prefix: str, scaled: bool) -> Part:
        """Return the part of a component, whose arrays have the prefix; `scaled` if it sees the scaled values."""
        copied = copy.copy(self)
        copied.arrays = {name[len(prefix) :]: a for name, a in self.arrays.items() if name.startswith(prefix)}
        if not scaled:
            copied._stretch, copied._shift = np.ones(self.union.size), np.zeros(self.union.size)
        return copied

    @property
    def united_slots(self) -> Ints:
        """Slot in the union of each slot of this learner; -1 is a free one."""
        return self._to

    def by_slot(self, name: str, first: float = 0.0, most: int | None = None) -> NDArray[Any]:
        """Return an array with one entry per slot, or of the first `most` slots; new entries are `first`."""
        given = self.arrays[name]
        size = self.union.size if most is None else min(most, self.union.size)
        laid = np.full((size, *given.shape[1:]), first, dtype=given.dtype)
        kept = np.flatnonzero((self._to[: len(given)] >= 0) & (self._to[: len(given)] < size))
        laid[self._to[kept]] = given[kept]
        return laid

    def by_class(self, name: str, skipped: int = 0) -> NDArray[Any]:
        """Return an array with one entry per class, after `skipped` numbers of another kind."""
        given = self.arrays[name][skipped:]
        laid = np.zeros((len(self.union.labels), *given.shape[1:]), dtype=given.dtype)
        laid[self._classes] = given
        return laid

    def by_slot_class(self, name: str) -> NDArray[Any]:
        """Return an array with one entry per slot and class."""
        given = self.by_slot(name)
        laid = np.zeros((len(given), len(self.union.labels), *given.shape[2:]), dtype=given.dtype)
        laid[:, self._classes] = given[:, : len(self._classes)]
        return laid

    @property
    def seen(self) -> Floats:
        """Number of this learner's instances with each united slot."""
        laid = np.zeros(self.union.size)
        kept = np.flatnonzero(self._to >= 0)
        laid[self._to[kept]] = self._counts[kept]
        return laid

    # ------------------------------------------------------------------ weights of scaled values

    def set_scale(self, own: Scale, merged: Scale) -> None:
        """Set the origin and unit of each slot here and in the merged learner.

        w (x - a) / b = w b' / b (x - a') / b' + w (a' - a) / b. The last term, which is added only when the feature is
        present, joins the intercept with the share of the instances that had the feature.
        """
        both = (own.unit > 0.0) & (merged.unit > 0.0)
        with np.errstate(over="ignore"):
            stretch = merged.unit / np.where(both, own.unit, 1.0)
            moved = (merged.origin - own.origin) / np.where(both, merged.unit, 1.0)
        self._stretch = np.where(both, np.clip(stretch, 1.0 / WIDEST, WIDEST), 1.0)
        moved = np.where(both, np.clip(moved, -WIDEST, WIDEST), 0.0)
        self._shift = moved * self.seen / max(1, self.steps)
        self._shift[0] = 0.0

    def rescaled(self, weights: Floats) -> Floats:
        """Convert weights, [slot][problem], to values as the merged learner scales them; in place."""
        weights *= self._stretch[:, None]
        if self.seen[0] > 0.0:  # else there is no intercept
            weights[0] += self._shift @ weights
        return weights

    def rescaled_precisions(self, precisions: Floats) -> Floats:
        """Convert precisions, [slot][problem], of such weights; in place."""
        precisions /= np.square(self._stretch)[:, None]
        return precisions

    def rescaled_covariances(self, covariances: Floats) -> Floats:
        """Convert covariances, [problem][slot][slot], of such weights; in place."""
        covariances *= np.outer(self._stretch, self._stretch)
        return covariances

    # ------------------------------------------------------------------ one-versus-rest

    @property
    def learned(self) -> NDArray[np.bool_]:
        """Mask of the united problems that this learner has learned."""
        if self.union.problems == 1:
            return np.full(1, len(self._classes) > 0)
        mask = np.zeros(self.union.problems, dtype=np.bool_)
        mask[self._classes] = True
        return mask

    def by_slot_problem(self, name: str, signed: Sequence[int] = (0,)) -> Floats:
        """Return numbers per slot and problem, [slot][problem][number]; those at `signed` follow a problem's sign."""
        given = self.by_slot(name)
        laid: Floats = np.zeros((len(given), self.union.problems, given.shape[2]))
        for problem, source, negated in self._problems():
            laid[:, problem] = given[:, source]
            if negated:
                laid[:, problem, list(signed)] *= -1.0
        return laid

    def by_problem(self, name: str, first: Sequence[float]) -> Floats:
        """Return numbers per problem, [problem][number]; those of a problem that was not learned are `first`."""
        given = self.arrays[name]
        laid: Floats = np.tile(np.asarray(first, dtype=np.float64), (self.union.problems, 1))
        for problem, source, _ in self._problems():
            laid[problem] = given[source]
        return laid

    def by_problem_slots(self, name: str) -> Floats:
        """Return one matrix over all slots per problem, the identity where nothing was learned."""
        given = self.arrays[name]
        laid: Floats = np.tile(np.eye(self.union.size), (self.union.problems, 1, 1))
        kept = np.flatnonzero(self._to[: given.shape[1]] >= 0)
        for problem, source, _ in self._problems():
            laid[problem][np.ix_(self._to[kept], self._to[kept])] = given[source][np.ix_(kept, kept)]
        return laid

    def _problems(self) -> list[tuple[int, int, bool]]:
        """Return (united problem, own problem, whether its sign turns) for each united problem that was learned.

        With one or two labels there is one problem, in which the second label is +1; see `BinaryRule`. A learner that
        learned without labels has none.
        """
        own = self._classes.tolist()
        if len(own) > 2:
            return [(united, mine, False) for mine, united in enumerate(own)]
        if self.union.problems > 1:
            return [(united, 0, mine == 0) for mine, united in enumerate(own)]
        return [(0, 0, own[0] == 1)] if own else []  # the first label is +1 here


# ---------------------------------------------------------------------- how numbers are combined


def total(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the sum."""
    summed: NDArray[Any] = np.sum(np.stack(parts), axis=0)
    return summed


def merged_moments(weights: Floats, means: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
    """Merge weight, mean and summed squared deviations over the first axis (Chan, Golub, LeVeque)."""
    weight, mean, square = weights[0].copy(), means[0].copy(), squares[0].copy()
    for w, m, s in zip(weights[1:], means[1:], squares[1:], strict=True):
        both = weight + w
        share = np.divide(w, both, out=np.zeros_like(both), where=both > 0.0)
        apart = m - mean
        with np.errstate(over="ignore"):
            square = np.minimum(square + s + apart * apart * weight * share, LARGEST)
        mean = mean + apart * share
        weight = both
    return weight, mean, square


def merged_ranges(weights: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats, Floats]:
    """Merge weight, smallest and largest over the first axis; parts without weight are left out."""
    empty = weights <= 0.0
    weight = weights.sum(axis=0)
    low = np.where(empty, np.inf, lows).min(axis=0)
    high = np.where(empty, -np.inf, highs).max(axis=0)
    return weight, np.where(weight > 0.0, low, 0.0), np.where(weight > 0.0, high, 0.0)


def merged_robust(*columns: Floats) -> tuple[Floats, ...]:
    """Merge robust statistics over the first axis; those of a feature that only one part has stay as they are.

    Median and spread are means by count, the commonest value is that of the part which has it most often. Runs of
    values begin again, and every value is tracked for a while.
    """
    weights, means, squares, counts, _, _, modes, shares, medians, spreads, varied = columns[:11]
    moments = merged_moments(weights, means, squares)
    count, off_centre = counts.sum(axis=0), varied.sum(axis=0)
    median = _mean_by(medians, counts)
    spread = np.exp(_mean_by(np.log(np.where(varied > 0.0, spreads, 1.0)), varied)) * (off_centre > 0.0)
    heaviest = (shares * counts).argmax(axis=0)[None]
    mode = np.take_along_axis(modes, heaviest, axis=0)[0]
    share = _mean_by(np.where((modes == mode) & (counts > 0.0), shares, 0.0), counts)
    none = np.zeros_like(count)
    restarts, step = columns[14].sum(axis=0), columns[15].max(axis=0)
    reach = none - 1.0  # every value is tracked at first
    tail = (none, none, none, restarts, step, count + SETTLED, none)
    merged = (*moments, count, reach, none, mode, share, median, spread, off_centre, *tail)
    is_alone = (counts > 0.0).sum(axis=0) <= 1
    return tuple(np.where(is_alone, column.sum(axis=0), both) for column, both in zip(columns, merged, strict=True))


def _mean_by(numbers: Floats, weights: Floats) -> Floats:
    """Return the mean over the first axis, 0 without weight."""
    whole = weights.sum(axis=0)
    mean: Floats = np.divide((numbers * weights).sum(axis=0), whole, out=np.zeros_like(whole), where=whole > 0.0)
    return mean


def weighted_mean(parts: Sequence[Part], numbers: Sequence[Floats]) -> Floats:
    """Return the mean of [slot][problem][number] arrays, each slot weighted by how often a learner saw it.

    A learner that has not learned a problem does not contribute to it, and a slot that no learner saw keeps zeros.
    """
    weights = np.stack([part.seen[:, None] * part.learned[None, :] for part in parts])[..., None]
    whole = weights.sum(axis=0)
    summed = (np.stack(numbers) * weights).sum(axis=0)
    mean: Floats = np.divide(summed, whole, out=np.zeros_like(summed), where=whole > 0.0)
    return mean


def average(parts: Sequence[Part], states: Sequence[Floats], power: float) -> Floats:
    """Average states, [slot][problem][number], whose first number is a weight; see `settle_intercept` for `power`.

    The weights are converted to values as the merged learner scales them, in place.
    """
    for part, state in zip(parts, states, strict=True):
        part.rescaled(state[..., 0])
    merged = weighted_mean(parts, states)
    settle_intercept(parts, merged[..., 0], power)
    return merged


def settle_intercept(parts: Sequence[Part], weights: Floats, power: float) -> None:
    """Draw the intercept of averaged weights, [slot][problem], towards 0 by (number of parts)^-power; in place.

    A part learns its intercept, which is in every instance, long before its other weights: these would have grown on
    the rest of the stream, the intercept would not. What decides is the ratio of the two. Of parts that differ in
    size, as many count as would make the same mean square.
    """
    steps = np.array([part.steps for part in parts], dtype=np.float64)
    number = steps.sum() ** 2 / np.square(steps).sum()
    weights[0] *= number**-power


def natural_mean(means: Sequence[Floats], precisions: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return mean and precision of the product of Gaussians that share the prior N(0, 1), which counts once.

    `precisions` are those beyond the prior's: the natural parameters, precision and precision times mean, add up.
    """
    gained = np.minimum(np.sum(np.stack(precisions), axis=0), LARGEST)
    pull = np.sum(np.stack([(1.0 + p) * m for m, p in zip(means, precisions, strict=True)]), axis=0)
    return pull / (1.0 + gained), gained
