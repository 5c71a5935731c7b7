from varifold.linear._truncated import TruncatedRule

class OLIDSRule(TruncatedRule):
    C: float
    theta: float
    lam: float
    B: float
    def __init__(self, C: float, theta: float, lam: float, B: float) -> None: ...
