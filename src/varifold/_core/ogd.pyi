from varifold._core.model import BinaryRule

class OGDRule(BinaryRule):
    c: float
    def __init__(self, c: float) -> None: ...
