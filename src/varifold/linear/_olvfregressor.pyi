from varifold.linear._olvf import OLVFRule
from varifold.linear._rule_regression import RuleRegression

class OLVFRegression(RuleRegression):
    epsilon: float
    def __init__(self, rule: OLVFRule, epsilon: float) -> None: ...
