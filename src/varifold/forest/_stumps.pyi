from varifold.forest._feature_files import SavedFeatureStates

class Stumps(SavedFeatureStates):
    candidates: int
    r: int
    growth: float
    compression: float
    smoothing: float
    seed: int
    paper_vote: bool
    quantiles: bool
    random_out: bool
