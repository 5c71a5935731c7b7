"""What passes from one scenario to the next."""

from __future__ import annotations

from dataclasses import dataclass

from varifold._core.block import Block

__all__ = ["State"]


@dataclass(frozen=True)
class State:
    """The stream so far, with the seed of the step at hand."""

    block: Block
    seed: int = 0
    scored_from: int = 0
    delay: int = 0
    conversion: str | None = None
