from varifold._engine.one_vs_rest import BinaryRule

class AdditiveRule(BinaryRule):
    r: float
    max_binned: int
    def __init__(self, r: float, max_binned: int, memory: float = 0.0) -> None: ...
    def notes(self) -> list[str]: ...
