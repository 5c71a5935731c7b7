from varifold._core.block import Vocabulary

class Binding:
    def __init__(self, vocabulary: Vocabulary) -> None: ...
