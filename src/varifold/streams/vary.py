"""Scenarios on files: the stream is thinned block by block while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from varifold._engine.block import Block
from varifold.errors import ParameterError
from varifold.streams.prepare import derived_seed
from varifold.streams.scenarios.columns import Columns
from varifold.streams.scenarios.registry import SCENARIOS
from varifold.streams.scenarios.spec import Step, parse
from varifold.streams.scenarios.state import State
from varifold.streams.stream import Stream

__all__ = ["Varied", "vary"]


class Varied:
    """A stream with a scenario on top; `blocks` reads it in bounded memory, in the order of the file."""

    def __init__(self, stream: Stream, steps: list[Step], seed: int) -> None:
        self._stream = stream
        self._steps = steps
        self._seed = seed
        self.scored_from = 0
        self.delay = max((step.parameters["rounds"] for step in steps if step.scenario.name == "delay"), default=0)

    def blocks(self) -> Iterator[Block]:
        """The blocks, in order; a scenario that needs it has the file read twice, the first time to measure it."""
        needs_extent = any(step.needs == "extent" for step in self._steps)
        rows, columns = self._measured() if needs_extent else (0, None)
        start = 0
        for block in self._stream.blocks():
            if not needs_extent:
                columns, rows = Columns(block, columns), start + len(block)
            assert columns is not None
            state = State(block, columns, rows, start)
            for index, step in enumerate(self._steps):
                state = step.scenario.apply(replace(state, seed=derived_seed(self._seed, index)), **step.parameters)
            yield state.block
            start += len(block)

    def _measured(self) -> tuple[int, Columns | None]:
        rows, columns = 0, None
        for block in self._stream.blocks():
            rows, columns = rows + len(block), Columns(block, columns)
        return rows, columns


def vary(stream: Stream, scenario: str = "none", *, seed: int = 0) -> Varied | None:
    """The stream under a scenario, without holding it in memory; None when the scenario needs all of it at once.

    The result is that of ``prepare(whole, scenario, seed=seed, shuffle=False)``, except that one-pass scenarios count
    the columns met so far. Scenarios that need the length or the columns of the whole (trapezoidal, informative, ...)
    read the stream twice; those that need its values (balanced, mixed, evolvable) or that have to read standard input
    twice are for `prepare`.
    """
    if seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0. Got {seed} instead.")
    steps = parse(scenario, SCENARIOS)
    needs = {step.needs for step in steps}
    if "values" in needs or ("extent" in needs and stream.once):
        return None
    return Varied(stream, steps, seed)
