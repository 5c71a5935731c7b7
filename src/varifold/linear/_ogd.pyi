from varifold._engine.one_vs_rest import BinaryRule

class OGDRule(BinaryRule):
    c: float
    def __init__(self, c: float) -> None: ...
