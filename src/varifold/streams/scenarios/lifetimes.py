"""Scenarios in which whole features appear and vanish: outages, rotating spaces, life spans."""

from __future__ import annotations

import numpy as np

from varifold.errors import ParameterError
from varifold.streams.scenarios import _masks as masks
from varifold.streams.scenarios.segment import MOST_PHASES, Segment

__all__ = ["bursts", "outage", "rotating", "silent"]


def outage(segment: Segment, share: float = 0.3, start: float = 0.4, stop: float = 0.7) -> Segment:
    """Let a group of columns vanish and return.

    A `share` of the columns (neighbours in file order, at least one, placed by the seed) is absent in the rows between
    `start` and `stop`, both given as shares of the stream. From no paper: the plain case of a failed device.
    """
    if not 0 < share <= 1:
        raise ParameterError(f"share must be above 0 and at most 1. Got {share} instead.")
    if not 0 <= start <= stop <= 1:
        raise ParameterError(f"0 <= start <= stop <= 1 must hold. Got start={start}, stop={stop} instead.")
    n, width = segment.rows, segment.columns.width
    size = min(width, max(1, round(share * width)))
    first = int(np.random.default_rng(segment.seed).integers(width - size + 1))
    alive = np.ones((2, width))
    alive[1, first : first + size] = 0
    return segment.masked(masks.Phased(alive, (segment.row_numbers >= start * n) & (segment.row_numbers < stop * n)))


def silent(segment: Segment, groups: int = 4, share: float = 0.4, rows: int = 100) -> Segment:
    """Let groups of columns fall silent: each with probability `share`, drawn again after every `rows` rows.

    The columns are dealt to the groups by the seed (with fewer columns, one group each). If all groups were silent, one
    is not. From no paper: devices that fail and return.
    """
    if groups < 1 or rows < 1 or not 0 <= share <= 1:
        raise ParameterError(
            f"groups and rows must be >= 1 and share from 0 to 1. Got groups={groups}, share={share}, rows={rows} "
            "instead."
        )
    width = segment.columns.width
    phases = -(-max(segment.rows, 1) // rows)
    if phases > MOST_PHASES:
        raise ParameterError(f"rows={rows} makes more than {MOST_PHASES:,} parts of {segment.rows:,} rows")
    groups = max(1, min(groups, width))
    draw = np.random.default_rng(segment.seed)
    group = draw.permutation(width) % groups
    alive = draw.random((phases, groups)) >= share
    kept = draw.integers(groups, size=phases)
    alive[np.arange(phases), kept] |= ~alive.any(axis=1)
    return segment.masked(masks.Phased(alive[:, group], segment.row_numbers // rows))


def rotating(segment: Segment, spaces: int = 3, rounds: int = 2) -> Segment:
    """Show disjoint groups of columns in turn: one of `spaces` is present at a time, each `rounds` times.

    The columns are dealt to the groups by the seed. From no paper: the hardest case, since consecutive spaces
    share nothing.
    """
    if spaces < 1 or not 1 <= rounds <= MOST_PHASES:
        raise ParameterError(
            f"spaces must be >= 1 and rounds from 1 to {MOST_PHASES:,}. Got spaces={spaces}, rounds={rounds} instead."
        )
    width = segment.columns.width
    if spaces > width:
        raise ParameterError(f"spaces={spaces} is more than the number of columns, {width}")
    group = np.random.default_rng(segment.seed).permutation(width) % spaces
    phase = (segment.row_numbers * spaces * rounds // max(segment.rows, 1)) % spaces
    return segment.masked(masks.Phased(group == np.arange(spaces)[:, None], phase))


def bursts(segment: Segment, life: float = 0.5, zipf: float = 0.5) -> Segment:
    """Let each column exist for a limited time, frequent or rare, like words and products.

    Life spans are exponential with mean `life` (a share of the stream) and start anywhere; during its life the
    column of rank r is present in a row with probability r^-zipf. Ranks, births and spans come from the seed. From no
    paper.
    """
    if not 0 < life <= MOST_PHASES or not 0 <= zipf < np.inf:
        raise ParameterError(
            f"life must be above 0 and at most {MOST_PHASES:,}, and zipf >= 0. Got life={life}, zipf={zipf} instead."
        )
    n, width = segment.rows, segment.columns.width
    draw = np.random.default_rng(segment.seed)
    shown = np.power(1.0 + draw.permutation(width), -zipf, dtype=np.float64)
    span = np.maximum(1, draw.exponential(life * n, width)).astype(np.int64)
    birth = np.floor(draw.uniform(-span, n)).astype(np.int64)
    return segment.masked(masks.Spans(birth, birth + span, shown, segment.start, len(segment.block), segment.seed))
