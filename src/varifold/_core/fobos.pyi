from varifold._core.leaning import LeaningRule

class FOBOSRule(LeaningRule):
    eta: float
    lam: float
    hinge: bool
    def __init__(self, eta: float, lam: float, hinge: bool, lean: bool = False) -> None: ...
