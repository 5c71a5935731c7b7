from varifold._core.leaning import LeaningRule

class FTRLProximalRule(LeaningRule):
    def __init__(self, alpha: float, beta: float, L1: float, L2: float, lean: bool = False) -> None: ...
