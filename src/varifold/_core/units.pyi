from varifold._core.model import Model

class Units(Model):
    stumps: int
    pruned: int
