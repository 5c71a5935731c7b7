from varifold._engine.one_vs_rest import BinaryRule

class PARule(BinaryRule):
    mode: int
    C: float
    def __init__(self, mode: str, C: float) -> None: ...
