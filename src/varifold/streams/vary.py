"""Scenarios on streams: features are masked block by block while the stream is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from varifold._engine.block import Block, concatenate
from varifold.errors import DataError
from varifold.streams.prepare import Prepared, check_seed, derived_seed, prepare
from varifold.streams.scenarios.columns import Columns
from varifold.streams.scenarios.registry import SCENARIOS, none
from varifold.streams.scenarios.segment import Segment, median_of
from varifold.streams.scenarios.spec import Step, parse
from varifold.streams.stream import Batch, Stream, batches_of

__all__ = ["Varied", "vary"]


class Varied(Stream):
    """A stream under a scenario, read in bounded memory and in the order of its source."""

    def __init__(self, stream: Stream, steps: list[Step], seed: int) -> None:
        self._stream = stream
        self._steps = steps
        self._seed = seed
        self.once = getattr(stream, "once", False)
        self.delay = max((step.parameters["rounds"] for step in steps if step.scenario.name == "delay"), default=0)

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order; where a scenario needs the length or all columns, the source is read twice."""
        return (batch.block for batch in self.batches())

    def batches(self) -> Iterator[Batch]:
        """The same with the ids and times of the rows."""
        if all(step.scenario.apply is none for step in self._steps):
            yield from batches_of(self._stream)
            return
        needs_extent = any(step.needs == "extent" for step in self._steps)
        rows, columns, median = self._extent() if needs_extent else (0, None, float("nan"))
        start = 0
        for batch in batches_of(self._stream):
            block = batch.block
            if columns is None or not needs_extent:
                columns, rows = Columns(block, columns), start + len(block)
            segment = Segment(block, columns, rows, start, median=median)
            for index, step in enumerate(self._steps):
                segment = step.scenario.apply(replace(segment, seed=derived_seed(self._seed, index)), **step.parameters)
            yield replace(batch, block=segment.block)
            start += len(block)

    def _extent(self) -> tuple[int, Columns | None, float]:
        """Number of rows, the columns and the median of the numbers to predict, of the whole stream."""
        rows, columns = 0, None
        targets = []
        for block in self._stream.blocks():
            rows, columns = rows + len(block), Columns(block, columns)
            targets.append(block.targets)
        return rows, columns, median_of(targets)


def vary(stream: Stream, scenario: str = "none", *, seed: int = 0) -> Varied | Prepared:
    """The stream under a scenario, without holding it in memory where the scenario allows that.

    The result is that of ``prepare(whole, scenario, seed=seed, shuffle=False)``, except that scenarios that need one
    pass count the columns seen so far. Scenarios that need the length or the columns of the whole (trapezoidal,
    informative, ...) read the stream twice. Those that need its values (balanced, mixed, evolvable), and those that
    would have to read standard input twice, read the whole stream into memory at once.

    Examples
    --------
    >>> from varifold import streams
    >>> stream = streams.read([{"a": 1.0, "b": 2.0, "y": k % 2} for k in range(4)], target="y")
    >>> [list(block.rows()) for block in streams.vary(stream, "trapezoidal:2").blocks()]
    [[{'a': 1.0}, {'a': 1.0}, {'a': 1.0, 'b': 2.0}, {'a': 1.0, 'b': 2.0}]]

    """
    if not callable(getattr(stream, "blocks", None)):
        raise DataError(
            f"vary() takes a Stream, not {type(stream).__name__}; read() makes one, prepare() takes a Block"
        )
    check_seed(seed)
    steps = parse(scenario, SCENARIOS)
    needs = {step.needs for step in steps}
    if "values" not in needs and not ("extent" in needs and getattr(stream, "once", False)):
        return Varied(stream, steps, seed)
    blocks = list(stream.blocks())
    if not blocks:
        raise DataError(f"the stream has no instances, which the scenario {scenario!r} needs")
    return prepare(concatenate(blocks), scenario, seed=seed, shuffle=False)
