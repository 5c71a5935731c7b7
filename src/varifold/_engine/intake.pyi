from varifold._engine.conformal import Conformal
from varifold._engine.guard import Guard
from varifold._engine.model import Model
from varifold._engine.scaler import Scaler
from varifold._engine.space import Space

class Intake(Guard):
    space: Space
    scaler: Scaler
    model: Model
    conformal: Conformal | None
    step: int
    intercept: bool
    def __init__(
        self,
        model: Model,
        scale: str = "standard",
        clip: float = 3.0,
        intercept: bool = True,
        max_features: int | None = None,
        evict: str = "oldest",
    ) -> None: ...
