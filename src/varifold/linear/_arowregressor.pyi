from varifold.linear._arow import AROWRule
from varifold.linear._rule_regression import RuleRegression

class AROWRegression(RuleRegression):
    def __init__(self, rule: AROWRule) -> None: ...
