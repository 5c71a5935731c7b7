"""`vary`: scenarios on streams, which mask features batch by batch while the stream is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varifold._engine.data.block import Block, concatenate
from varifold.errors import DataError, ParameterError
from varifold.streams.prepare import Prepared, check_seed, derived_seed, prepare
from varifold.streams.scenarios.columns import Columns
from varifold.streams.scenarios.registry import SCENARIOS, none
from varifold.streams.scenarios.segment import Segment, median_of
from varifold.streams.scenarios.spec import Step, parse
from varifold.streams.stream import Batch, Stream

__all__ = ["Varied", "vary"]


class Varied(Stream):
    """A stream under a scenario, read in bounded memory and in the order of its source."""

    def __init__(self, stream: Stream, steps: list[Step], seed: int) -> None:
        self._stream = stream
        self._steps = steps
        self._seed = seed
        self.once = stream.once
        self.key = stream.key
        self.delay = max((step.parameters["rounds"] for step in steps if step.scenario.name == "delay"), default=0)
        shares = [(step.parameters["share"], i) for i, step in enumerate(steps) if step.scenario.name == "labels"]
        if shares:
            self.label_share, self.label_seed = shares[-1][0], derived_seed(seed, shares[-1][1])

    def batches(self) -> Iterator[Batch]:
        """Yield the batches; if a scenario needs the length or all columns, the source is read twice."""
        if all(step.scenario.apply is none for step in self._steps):
            return self._stream.batches()
        return self._varied()

    def _varied(self) -> Iterator[Batch]:
        needs_extent = any(step.needs == "extent" for step in self._steps)
        rows, columns, median = self._extent() if needs_extent else (0, None, float("nan"))
        start = 0
        for batch in self._stream.batches():
            keys, block = self._split(batch.block)
            if columns is None or not needs_extent:
                columns, rows = Columns(block, columns), start + len(block)
            segment = Segment(block, columns, rows, start, median=median)
            for index, step in enumerate(self._steps):
                segment = step.scenario.apply(replace(segment, seed=derived_seed(self._seed, index)), **step.parameters)
            yield replace(batch, block=segment.block if keys is None else _joined(keys, segment.block))
            start += len(block)

    def _extent(self) -> tuple[int, Columns | None, float]:
        """Return the number of rows, the columns and the median of the targets of the whole stream."""
        rows, columns = 0, None
        targets = []
        for whole in self._stream.blocks():
            _, block = self._split(whole)
            rows, columns = rows + len(block), Columns(block, columns)
            targets.append(block.targets)
        return rows, columns, median_of(targets)

    def _split(self, block: Block) -> tuple[Block | None, Block]:
        """Separate the cells of the key, which scenarios do not see, from the others; None without a key."""
        if self.key is None:
            return None, block
        of_key = block.vocabulary.column_array()[block.indices] == block.vocabulary.id_of(self.key)
        return _cells(block, of_key), _cells(block, ~of_key)


def _cells(block: Block, chosen: NDArray[np.bool_]) -> Block:
    """Return the block with only the chosen cells."""
    indptr = np.append(0, np.cumsum(chosen))[block.indptr]
    return _with_cells(block, indptr, block.indices[chosen], block.values[chosen])


def _joined(first: Block, second: Block) -> Block:
    """Join the cells of each row of two blocks of the same rows."""
    rows = np.concatenate([np.repeat(np.arange(len(block)), np.diff(block.indptr)) for block in (first, second)])
    order = np.argsort(rows, kind="stable")
    indices = np.concatenate([first.indices, second.indices])[order]
    values = np.concatenate([first.values, second.values])[order]
    return _with_cells(second, first.indptr + second.indptr, indices, values)


def _with_cells(block: Block, indptr: Any, indices: Any, values: Any) -> Block:
    return Block(block.vocabulary, indptr, indices, values, block.codes, block.labels, block.weights, block.targets)


def vary(stream: Stream, scenario: str = "none", *, seed: int = 0) -> Varied | Prepared:
    """Apply a scenario to a stream, in bounded memory where the scenario allows it.

    The result equals ``prepare(whole, scenario, seed=seed, shuffle=False)``, except that scenarios that need one pass
    count the columns seen so far. Scenarios that need the length or all columns (trapezoidal, informative, ...) read
    the stream twice. Those that need its values (balanced, mixed, evolvable), and those that would have to read
    standard input twice, read the whole stream into memory, and are rejected if the stream has a key, unless they only
    choose rows.

    Examples
    --------
    >>> from varifold import streams
    >>> stream = streams.read([{"a": 1.0, "b": 2.0, "y": k % 2} for k in range(4)], target="y")
    >>> [list(block.rows()) for block in streams.vary(stream, "trapezoidal:2").blocks()]
    [[{'a': 1.0}, {'a': 1.0}, {'a': 1.0, 'b': 2.0}, {'a': 1.0, 'b': 2.0}]]

    """
    if not isinstance(stream, Stream):
        raise DataError(
            f"vary() needs a Stream, not {type(stream).__name__}; read() makes one; for a Block use prepare()"
        )
    check_seed(seed)
    steps = parse(scenario, SCENARIOS)
    needs = {step.needs for step in steps}
    if "values" not in needs and not ("extent" in needs and stream.once):
        return Varied(stream, steps, seed)
    if stream.key is not None and not all(step.scenario.keeps_cells for step in steps):
        raise ParameterError(
            f"the scenario {scenario!r} needs all rows in memory and would change the key {stream.key!r} as well; "
            "choose one that only hides columns, such as vfs:0.5, and a file instead of standard input"
        )
    blocks = list(stream.blocks())
    if not blocks:
        raise DataError(f"the stream has no instances, which the scenario {scenario!r} needs")
    return prepare(concatenate(blocks), scenario, seed=seed, shuffle=False)
