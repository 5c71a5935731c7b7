from varifold._engine.regression_model import RegressionModel

class NeighboursRegression(RegressionModel):
    def __init__(self, k: int, window: int, widest: int = 512) -> None: ...
