from varifold._engine.regression_model import RegressionModel

class TrackingRegression(RegressionModel):
    def __init__(self, level_rate: float, rate: float) -> None: ...
