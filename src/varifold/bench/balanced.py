"""Answers by probability over prior: for measures in which every label counts the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from river import base as river_base

from varifold.base import Block
from varifold.base.nested import make_learner
from varifold.errors import ParameterError
from varifold.evaluate.metrics import Floats, Ints

__all__ = ["Balanced"]


class Balanced(river_base.Classifier):
    """A learner that answers the label whose probability exceeds its share of the labels so far by most.

    Balanced accuracy is the mean recall over labels; this is the answer that maximises it where the probabilities are
    right. The probabilities themselves stay the learner's.

    Parameters
    ----------
    base
        A registered learner, such as ``"auto"`` or ``"olvf:C=0.1"``.

    """

    def __init__(self, base: str = "auto") -> None:
        self.base = base
        self.learner = make_learner(base)
        self.counts: dict[Any, float] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """Labels in the order in which they were learned."""
        found: list[Any] = self.learner.classes
        return found

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one labelled instance."""
        self.learner.learn_one(x, y, w)
        self.counts[y] = self.counts.get(y, 0.0) + w

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The learner's probabilities."""
        found: dict[Any, float] = self.learner.predict_proba_one(x)
        return found

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The label of the largest probability over prior; None before any label."""
        shares = self.predict_proba_one(x)
        return max(shares, key=lambda y: shares[y] / (self.counts.get(y, 0.0) + 1.0)) if shares else None

    def run_block(self, block: Block, schedule: Ints | None = None) -> tuple[Ints, Floats]:
        """Predict and learn a block, as `VaryingClassifier.run_block`; labels come at once."""
        if schedule is not None:
            raise ParameterError("Balanced takes labels that come at once; leave out the delay")
        codes, probabilities = self.learner.run_block(block)
        labels = list(block.labels.values)
        place = {y: i for i, y in enumerate(self.classes)}
        learned = np.array([place.get(y, 0) for y in labels], dtype=np.int64)[block.codes]
        start = np.array([self.counts.get(y, 0.0) for y in self.classes])
        one_hot = (learned[:, None] == np.arange(len(place))) & (block.codes >= 0)[:, None]
        before = start + np.cumsum(one_hot, axis=0) - one_hot
        answers = np.where(codes < 0, -1, (probabilities / (before + 1.0)).argmax(axis=1))
        self.counts = dict(zip(self.classes, (start + one_hot.sum(axis=0)).tolist(), strict=True))
        return answers, probabilities
