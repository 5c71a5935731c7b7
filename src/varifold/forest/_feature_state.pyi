from varifold._engine.model import Model

class FeatureStates(Model):
    stumps: int
    grace: int
    pruned: int
