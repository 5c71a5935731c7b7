from varifold._engine.vocabulary import Vocabulary

class Binding:
    def __init__(self, vocabulary: Vocabulary) -> None: ...
