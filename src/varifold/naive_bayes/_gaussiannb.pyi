from varifold.naive_bayes._class_table import ClassTable

class GaussianNBModel(ClassTable):
    def __init__(self, prior: float) -> None: ...
