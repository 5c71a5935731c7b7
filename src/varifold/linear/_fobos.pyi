from varifold._engine.one_vs_rest import BinaryRule

class FOBOSRule(BinaryRule):
    eta: float
    lam: float
    hinge: bool
    def __init__(self, eta: float, lam: float, hinge: bool) -> None: ...
