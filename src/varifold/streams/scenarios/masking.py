"""Scenarios that hide some columns in some rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from varifold.errors import ParameterError
from varifold.streams.scenarios import _masks as masks
from varifold.streams.scenarios.segment import MOST_PHASES, Segment

__all__ = ["capricious", "informative", "trapezoidal", "uninformative", "vfs"]


def _share(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ParameterError(f"{name} must be a share between 0 and 1. Got {value} instead.")
    return value


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}. Got {value!r} instead.")


def _bernoulli(segment: Segment, removal: np.ndarray[Any, Any], group: Any = None, least: int = 0) -> Segment:
    """Hide the columns of a row independently, with the probabilities of the row's group."""
    rows = np.ascontiguousarray(np.zeros(len(segment.block)) if group is None else group, dtype=np.int32)
    shown = 1.0 - np.broadcast_to(removal, (len(removal), segment.columns.width))
    return segment.masked(masks.Bernoulli(shown, rows, segment.seed, least, segment.columns.repeated))


def vfs(segment: Segment, ratio: float, mode: str = "bernoulli", min: int = 0) -> Segment:
    """Hide a share `ratio` of the columns of each row (varying feature space).

    As in OLVF (ratios .25, .5, .75) and ORF3V (.75). ``mode=bernoulli`` hides each column on its own, as the code of
    OLVF's predecessor does; ``mode=exact`` hides round(ratio d) columns of every row, as the papers' text reads. With
    few columns the two differ, since the first can leave a row without any; ``min=1`` keeps one.
    """
    _share("ratio", ratio)
    _choice("mode", mode, ("bernoulli", "exact"))
    if min < 0:
        raise ParameterError(f"min must be a whole number >= 0. Got {min} instead.")
    if mode == "bernoulli":
        return _bernoulli(segment, np.array([[ratio]]), least=min)
    width = segment.columns.width
    hidden = max(0, _min(round(ratio * width), width - min))
    return segment.masked(masks.Exact(width, hidden, len(segment.block), segment.seed, segment.columns.repeated))


_min = min


def trapezoidal(segment: Segment, chunks: int = 10) -> Segment:
    """Add columns over time: in chunk c of `chunks`, the first c/chunks of them, in file order, are present.

    As in OLSF, OLVF, OVFM and ORF3V. Row i of n shows the first max(1, ceil(d (floor(chunks i / n) + 1) / chunks))
    columns. The code of OLVF's predecessor and of OLIDS uses a width of floor((d + 1) / 10) c + 1, and OVFM's code 5
    chunks (``trapezoidal:5``) where its text has 10.
    """
    if not 1 <= chunks <= MOST_PHASES:
        raise ParameterError(f"chunks must be a whole number >= 1 and at most {MOST_PHASES:,}. Got {chunks} instead.")
    d = segment.columns.width
    phases, phase = np.unique(chunks * segment.row_numbers // max(segment.rows, 1), return_inverse=True)
    widths = np.maximum(1, -(-d * (phases + 1) // chunks))
    return segment.masked(masks.Phased(np.arange(d) < widths[:, None], phase))


def capricious(segment: Segment, mode: str = "bernoulli") -> Segment:
    """Hide half of the columns of each row, or up to half.

    As in OVFM. ``mode=atmost`` is its text ("at most 50%"): the number of hidden columns is drawn for each row, any
    from 0 to floor(d / 2) equally likely. ``mode=pairs`` hides exactly one of each two neighbouring columns, as the
    authors' code does; the last of an odd number always stays. The default hides each column with probability .5.
    """
    _choice("mode", mode, ("bernoulli", "atmost", "pairs"))
    if mode == "bernoulli":
        return _bernoulli(segment, np.array([[0.5]]))
    if mode == "atmost":
        width, repeated = segment.columns.width, segment.columns.repeated
        return segment.masked(masks.Exact(width, width // 2, len(segment.block), segment.seed, repeated, True))
    return segment.masked(masks.Pairs(segment.columns.width, segment.seed))


def informative(segment: Segment, a: float = 0.1, b: float = 0.3, half: str = "random") -> Segment:
    """Make absence informative: hide half of the columns more often in one class than in the other.

    As in OVFIV. A random half of the columns is hidden with probability `a` in rows of the first label of the table (in
    registered sets the negative one) and `b` in all others; the other half with .5 everywhere. Of numbers to predict
    those up to the median count as the first label. The paper does not state which half: ``half=random`` takes one from
    the seed, ``half=first`` the first columns in file order. Nor does it state which label is which; ``a=0.3,b=0.1``
    turns the rates round.
    """
    _share("a", a)
    _share("b", b)
    _choice("half", half, ("random", "first"))
    width = segment.columns.width
    removal = np.full((2, width), 0.5)
    order = np.arange(width) if half == "first" else np.random.default_rng(segment.seed).permutation(width)
    chosen = order[: width // 2]
    removal[0, chosen] = a
    removal[1, chosen] = b
    return _bernoulli(segment, removal, segment.upper)


def uninformative(segment: Segment) -> Segment:
    """Hide every cell with probability .5, whatever the label (OVFIV's counterpart of ``informative``)."""
    return _bernoulli(segment, np.array([[0.5]]))
