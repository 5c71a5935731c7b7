from varifold.linear._additive import AdditiveRule
from varifold.linear._rule_regression import RuleRegression

class AdditiveRegression(RuleRegression):
    def __init__(self, rule: AdditiveRule) -> None: ...
