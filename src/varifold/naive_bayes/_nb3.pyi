from varifold.naive_bayes._class_table import ClassTable

class NB3Model(ClassTable):
    M: float
    def __init__(self, prior: float, M: float) -> None: ...
