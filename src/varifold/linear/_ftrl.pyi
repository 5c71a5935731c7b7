from varifold._engine.one_vs_rest import BinaryRule

class FTRLProximalRule(BinaryRule):
    def __init__(self, alpha: float, beta: float, L1: float, L2: float) -> None: ...
