from varifold._core.leaning import LeaningRule

class OGDRule(LeaningRule):
    c: float
    def __init__(self, c: float, lean: bool = False) -> None: ...
