"""`AskingClassifier`: a classifier that learns only the labels that its policy requests."""

from __future__ import annotations

from typing import Any

from river import base

from varifold.ask.policy import AskPolicy
from varifold.base.learner import learns_unlabelled

__all__ = ["AskingClassifier"]


class AskingClassifier(base.Wrapper[Any], base.Classifier):
    """Learn only the labels that a policy requests; for evaluation, where every label is known.

    The other instances are learned without their label if the classifier does that (`traits.unlabelled`).

    Parameters
    ----------
    classifier
        A classifier of ours or of river.
    policy
        Decides which labels are learned: a policy, or its budget, or text such as ``"0.05:margin"``.

    Examples
    --------
    In a comparison, ``varifold bench run`` accepts it as
    ``varifold.ask:AskingClassifier:classifier=(arow),policy=0.05:margin``.

    >>> from varifold import AROW
    >>> from varifold.ask import AskingClassifier
    >>> model = AskingClassifier(AROW(), "0.05:margin")
    >>> for step in range(2000):
    ...     model.learn_one({"heat": step % 10}, step % 10 > 4)
    >>> model.policy.asked < 120, model.predict_one({"heat": 9})
    (True, True)

    """

    def __init__(self, classifier: Any, policy: AskPolicy | float | str = 0.05) -> None:
        self.classifier = classifier
        if isinstance(policy, str):
            policy = AskPolicy.parse(policy)
        self.policy = policy if isinstance(policy, AskPolicy) else AskPolicy(policy)
        self._unlabelled = learns_unlabelled(classifier)
        # ours and those that say so receive strings as they are, not as indicators: the key of `PerKey` is one
        self.takes_strings = hasattr(classifier, "run_block") or getattr(classifier, "takes_strings", False)

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        return bool(getattr(self.classifier, "_multiclass", True))

    @classmethod
    def _unit_test_params(cls) -> Any:
        from varifold.linear import AROW

        yield {"classifier": AROW(), "policy": AskPolicy(budget=0.5)}

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predict a label."""
        return self.classifier.predict_one(x, **kwargs)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Predict the probability of each label."""
        probabilities: dict[Any, float] = self.classifier.predict_proba_one(x, **kwargs)
        return probabilities

    @property
    def coverages(self) -> tuple[float, ...]:
        """Coverages of the classifier's sets of labels."""
        return tuple(getattr(self.classifier, "coverages", ()))

    def predict_set_one(self, x: dict[Any, Any], coverage: float = 0.9) -> set[Any]:
        """Predict a set of labels; the classifier needs `coverages`."""
        labels: set[Any] = self.classifier.predict_set_one(x, coverage)
        return labels

    def learn_one(self, x: dict[Any, Any], y: Any, **kwargs: Any) -> None:
        """Learn the instance if the policy requests its label; else without it, if the classifier can."""
        if self.policy.should_ask(self.classifier, x):
            self.policy.score(self.classifier.predict_one(x) == y)
            self.classifier.learn_one(x, y, **kwargs)
        elif self._unlabelled:
            self.classifier.learn_one(x, None, **kwargs)
