from typing import Any

from varifold.linear._truncated import TruncatedRule

class OLIDSRule(TruncatedRule):
    C: float
    theta: float
    lam: float
    B: float
    by_column: bool
    clip: float
    def __init__(
        self, C: float, theta: float, lam: float, B: float, by_column: bool = ..., clip: float = ...
    ) -> None: ...
    def fill(self, arrays: dict[str, Any], capacity: int) -> None: ...
