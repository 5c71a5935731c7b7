"""Parameters shared by the two window forests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from varifold.base.declared import declared
from varifold.base.params import Constraint, Integer, Real


@declared
class WindowTrees:
    """Declare the parameters of `WindowForest` and `WindowForestRegressor`: a mixin, listed before the base class."""

    _parameters: ClassVar[dict[str, Constraint]] = {
        "trees": Integer(1, 1000),
        "window": Integer(10, 1_000_000),
        "columns": Real(0, 64),
        "cuts": Integer(1, 64),
        "min_leaf": Integer(1, 1_000_000),
        "smoothing": Real(0, 1e6, open_low=True),
        "seed": Integer(0, 2**63 - 1),
    }
    _cost = "O(trees depth √present)"
    _uses_absence = True

    trees: int = 10
    window: int = 10_000
    columns: float = 2.0
    cuts: int = 16
    min_leaf: int = 2
    smoothing: float = 1.0
    seed: int = 0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window": 200}  # full within a check's stream
        yield {"window": 30, "trees": 3, "min_leaf": 1}

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the compiled model."""
        return {name: getattr(self, name) for name in WindowTrees._parameters}
