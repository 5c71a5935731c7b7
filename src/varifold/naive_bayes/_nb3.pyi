from varifold.naive_bayes._class_table import PresenceTable

class NB3Model(PresenceTable):
    M: float
    def __init__(self, prior: float, M: float) -> None: ...
