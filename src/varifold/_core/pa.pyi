from varifold._core.leaning import LeaningRule

class PARule(LeaningRule):
    mode: int
    C: float
    def __init__(self, mode: str, C: float, lean: bool = False) -> None: ...
