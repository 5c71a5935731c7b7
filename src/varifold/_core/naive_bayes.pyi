from varifold._core.model import Model

class GaussianNBModel(Model):
    prior: float
    def __init__(self, prior: float) -> None: ...
