from varifold._engine.block import Vocabulary

class Binding:
    def __init__(self, vocabulary: Vocabulary) -> None: ...
