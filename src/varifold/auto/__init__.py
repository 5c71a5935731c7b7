"""Default learners: mixtures of learners of all other families.

`AutoClassifier` and `AutoRegressor` (classifier.py, regressor.py; what they share in learner.py) hold one compiled
mixture each. In the order of an instance's way:

    experts.py             the two tables of experts: model, what it sees, limits, start values
    _expert_set            the models and their exponential weights; held by both mixtures
    _views, _categories    what an expert sees: presence only; wide string columns, bounded
    _restarting            an expert that restarts after drift
    _classification        the mixture of the classifier; uses _stacking, _guard, _error_watch
    _regression            the mixture of the regressor; uses _levels, _warm_up
    _history, report.py    weights over time; the report

Nothing below `auto` in the layers may import it.
"""

from varifold.auto.classifier import AutoClassifier
from varifold.auto.regressor import AutoRegressor
from varifold.auto.report import AutoReport, Change, Drift, ExpertState, RegressionReport

__all__ = ["AutoClassifier", "AutoRegressor", "AutoReport", "Change", "Drift", "ExpertState", "RegressionReport"]
