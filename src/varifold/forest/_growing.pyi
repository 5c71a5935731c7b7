from varifold._engine.model import Model

class Growing(Model):
    columns: float
    cuts: int
    min_leaf: int
    grown: int
