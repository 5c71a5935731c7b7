from varifold.linear._truncated import TruncatedRule

class OLSFRule(TruncatedRule):
    mode: int
    C: float
    lam: float
    B: float
    def __init__(self, mode: str, C: float, lam: float, B: float) -> None: ...
