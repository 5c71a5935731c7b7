from varifold._engine.model import BinaryRule

class OGDRule(BinaryRule):
    c: float
    def __init__(self, c: float) -> None: ...
