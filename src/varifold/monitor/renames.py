"""Suggest renames: a column that fell silent and one that was born then and reads alike."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold.base.estimator import Name
from varifold.monitor.column import Column
from varifold.monitor.drift import LEVELS, Floats
from varifold.monitor.units import linear_map, unit_change

__all__ = ["ENOUGH", "Rename", "match"]

ENOUGH = 50
"""Occurrences of a born column before it is compared."""
_ACCEPTED = 0.7
_MARGIN = 0.05
_WEIGHTS = {"distribution": 3.0, "correlations": 3.0, "presence": 0.5, "name": 0.5}
_JOINT = 25
"""Rows that two columns must share for a correlation."""

Row = Mapping[Name, float | str]


@dataclass(frozen=True)
class Rename:
    """A suggested rename with its evidence, each between 0 (different) and 1 (alike).

    `evidence` compares the distribution of values, the correlations with other columns, how often the column is
    present, and the names. `unit` describes a change of unit that came with the rename.
    """

    old: Name
    new: Name
    score: float
    evidence: dict[str, float] = field(default_factory=dict)
    unit: str | None = None

    def __str__(self) -> str:
        parts = ", ".join(f"{key} {value:.2f}" for key, value in self.evidence.items())
        return f"{self.old} -> {self.new} ({self.score:.2f}: {parts}{f'; {self.unit}' if self.unit else ''})"


def match(lost: Sequence[Column], born: Sequence[Column], rows: Sequence[Row]) -> list[Rename]:
    """Match silent columns with born ones, each at most once, by the assignment with the highest total score."""
    from scipy.optimize import linear_sum_assignment

    possible = [(old, new) for old in lost for new in born if _may_follow(old, new)]
    if not possible:
        return []
    correlations = Correlations(rows)
    pairs = {(old.name, new.name): _compare(old, new, correlations) for old, new in possible}
    scores = np.array([[_score(pairs.get((old.name, new.name))) for new in born] for old in lost])
    renames = []
    chosen = np.stack(linear_sum_assignment(-scores), axis=1)
    for i, j in chosen.tolist():
        others = np.append(np.delete(scores[i], j), np.delete(scores[:, j], i))
        pair = pairs.get((lost[i].name, born[j].name))
        # where a second candidate fits as well, no guess is better than a wrong one
        if pair is not None and pair.score >= _ACCEPTED and pair.score >= others.max(initial=0.0) + _MARGIN:
            renames.append(pair)
    return renames


def _score(pair: Rename | None) -> float:
    return 0.0 if pair is None else pair.score


def _may_follow(old: Column, new: Column) -> bool:
    """Return whether a column may continue another: it was born when the other fell silent, or soon after."""
    overlap = old.last - new.first
    life = max(new.last - new.first, 1)
    return overlap <= max(20, 0.1 * life) and -overlap <= max(1000, life)


def _compare(old: Column, new: Column, table: Correlations) -> Rename | None:
    if bool(old.numbers) != bool(new.numbers) or bool(old.categories) != bool(new.categories):
        return None
    if table.together(old.name, new.name):
        return None
    correlations = table.alike(old.name, new.name)
    unit = None
    if old.numbers:
        distribution, unit = _alike_numbers(np.array(old.sample), np.array(new.sample), correlations is not None)
    else:
        distribution = _alike_shares(old.category_shares(), new.category_shares())
    presence = min(old.share, new.share) / max(old.share, new.share)
    name = difflib.SequenceMatcher(None, str(old.name), str(new.name)).ratio()
    evidence = {"distribution": distribution, "correlations": correlations, "presence": presence, "name": name}
    known = {key: value for key, value in evidence.items() if value is not None}
    score = sum(_WEIGHTS[key] * value for key, value in known.items()) / sum(_WEIGHTS[key] for key in known)
    if correlations is None:
        score *= 0.9  # distribution and presence alone fit many columns: ask more of them
    return Rename(old.name, new.name, score, known, unit)


def _alike_numbers(old: Floats, new: Floats, correlated: bool) -> tuple[float, str | None]:
    """Return 1 for equal distributions, 0 for separate ones, and the unit change if the values were converted.

    A conversion needs a second witness: many columns have the same shape, so it counts only for known units or if the
    column's correlations are known.
    """
    direct = 1.0 - _distance(old, new)
    before, after = np.quantile(old, LEVELS), np.quantile(new, LEVELS)
    fit = linear_map(before, after)
    unit = unit_change(before, after, min(len(old), len(new)))
    if fit is None or direct > 0.6 or (unit is None and not correlated):
        return direct, None
    # a known conversion is better evidence than an equal shape
    converted = (0.8 if unit is None else 0.9) * (1.0 - _distance(fit[0] * old + fit[1], new))
    if converted <= direct:
        return direct, None
    return converted, unit or f"about {fit[0]:.3g} times as large, {fit[1]:+.3g}"


def _distance(a: Floats, b: Floats) -> float:
    """Return the largest difference of two distribution functions, less what chance explains."""
    points = np.concatenate([a, b])
    gap = np.abs(
        np.searchsorted(np.sort(a), points, "right") / len(a) - np.searchsorted(np.sort(b), points, "right") / len(b)
    ).max()
    return float(max(0.0, gap - 0.7 * np.sqrt(1.0 / len(a) + 1.0 / len(b))))


def _alike_shares(a: dict[str, float], b: dict[str, float]) -> float:
    return sum(min(share, b.get(name, 0.0)) for name, share in a.items())


class Correlations:
    """Rank correlations of all columns over some rows; each pair over the rows that have both."""

    def __init__(self, rows: Sequence[Row]) -> None:
        names = sorted({name for row in rows for name in row}, key=repr)
        self._at = {name: j for j, name in enumerate(names)}
        z = np.full((len(rows), len(names)), np.nan)
        for name, j in self._at.items():
            having = [i for i, row in enumerate(rows) if name in row]
            z[having, j] = _ranks([rows[i][name] for i in having])
        present = ~np.isnan(z)
        z = np.where(present, z, 0.0)
        mask = present.astype(float)
        self._both = mask.T @ mask
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (z.T @ mask) / self._both  # of the row's column, where the other one is present as well
            square = (z.T**2 @ mask) / self._both - mean**2
            self._of = ((z.T @ z) / self._both - mean * mean.T) / np.sqrt(square * square.T)

    def together(self, old: Name, new: Name) -> bool:
        """Return whether some row has both columns."""
        places = self._at.get(old), self._at.get(new)
        return None not in places and bool(self._both[places])

    def alike(self, old: Name, new: Name) -> float | None:
        """Compare the correlations with all other columns: the cosine of both lists; None if none is strong enough."""
        if old not in self._at or new not in self._at:
            return None
        i, j = self._at[old], self._at[new]
        x, y, rows = self._of[i], self._of[j], np.minimum(self._both[i], self._both[j])
        usable = (rows >= _JOINT) & np.isfinite(x) & np.isfinite(y)
        x, y, noise = x[usable], y[usable], 1.0 / np.sqrt(rows[usable])
        if not (np.maximum(np.abs(x), np.abs(y)) > np.maximum(0.25, 3.0 * noise)).any():
            return None
        return float(max(0.0, x @ y / np.sqrt((x @ x) * (y @ y))))


def _ranks(values: list[Any]) -> NDArray[np.float64] | float:
    """Return mean ranks; for strings of two values 0 and 1, for other strings NaN."""
    if any(isinstance(value, str) for value in values):
        levels = sorted(set(map(str, values)))
        return np.array([float(str(value) == levels[0]) for value in values]) if len(levels) == 2 else np.nan
    numbers = np.array(values, dtype=float)
    ordered = np.sort(numbers)
    return (np.searchsorted(ordered, numbers, "left") + np.searchsorted(ordered, numbers, "right")) / (
        2.0 * len(values)
    )
