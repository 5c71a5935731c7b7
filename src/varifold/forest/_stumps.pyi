from varifold.forest._feature_state import Units

class Stumps(Units):
    candidates: int
    grace: int
    r: int
    growth: float
    compression: float
    smoothing: float
    seed: int
    paper_vote: bool
    quantiles: bool
    random_out: bool
