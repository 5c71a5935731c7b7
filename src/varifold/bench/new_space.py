"""Define ensembles for a switch of the feature space whose new model learns the second space from the start."""

from __future__ import annotations

import math
import random
import re
from typing import Any

from river import base as river_base

from varifold._numeric.hedge import Weights
from varifold.base.nested import make_learner
from varifold.base.params import Integer, OneOf, validate
from varifold.errors import DataError

__all__ = ["NewSpace"]

FAMILIES = {"cwfe": ",r=0.1", "pafe": "", "fesl": ""}
"""Methods, and the parameters of their parts."""
NEW = re.compile(r"new\d+")


class NewSpace(river_base.Classifier):
    """CWFE, PAFE or FESL on streams ``evolvable:overlap=T1``, which show both spaces during the whole first half.

    The old model sees what the papers' streams show: the old space, both in the last `overlap` rows, then the new
    space. The new model sees the columns ``new1``, ``new2``, ... from the first row on, which the papers' text does not
    allow. After the switch the two are mixed as in the papers. Two labels.

    Parameters
    ----------
    family
        ``"cwfe"``, ``"pafe"`` or ``"fesl"``, each as in its paper.
    combine
        ``"c"``: the weighted mean of both scores; ``"s"``: one of them, drawn by weight, with fixed share.
    switch, horizon
        Rows before and after the switch (T1, T2).
    overlap
        Rows before the switch from which the map is learned (B).
    seed
        Of the draws.

    """

    def __init__(
        self,
        family: str = "cwfe",
        combine: str = "c",
        switch: int = 1,
        horizon: int = 1,
        overlap: int = 10,
        seed: int = 0,
    ) -> None:
        self.family = family
        self.combine = combine
        self.switch = switch
        self.horizon = horizon
        self.overlap = overlap
        self.seed = seed
        limits = {"family": OneOf(*FAMILIES), "combine": OneOf("c", "s")}
        counts = {"switch": Integer(1), "horizon": Integer(1), "overlap": Integer(0), "seed": Integer(0)}
        validate(type(self).__name__, limits, self.__dict__)
        validate(type(self).__name__, counts, self.__dict__)
        more = FAMILIES[family]
        self._old = make_learner(f"{family}:paper,part=updated,switch={switch},overlap={min(overlap, switch)}{more}")
        self._new = make_learner(f"{family}:paper,part=new,switch={switch + horizon},overlap=0{more}")
        self._mix = Weights(2, "horizon", float(horizon), -1.0 if combine == "s" else 0.0)
        self._step = 0

    @property
    def _multiclass(self) -> bool:
        return False

    @property
    def classes(self) -> list[Any]:
        """Return the labels in the order in which they were learned."""
        labels: list[Any] = self._old.classes
        return labels

    def _views(self, x: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Split an instance for the old and the new model."""
        new = {name: value for name, value in x.items() if NEW.fullmatch(str(name))}
        hidden = self._step < self.switch - self.overlap
        return ({name: value for name, value in x.items() if name not in new} if hidden else x), new

    def _margins(self, x: dict[Any, Any]) -> tuple[float, float]:
        """Return the scores of the second label by both models; 0 if a model has not seen two labels."""
        found = []
        for learner, view in zip((self._old, self._new), self._views(x), strict=True):
            margins = learner.margins_one(view)
            found.append(margins[self.classes[1]] if len(margins) == 2 else 0.0)
        return found[0], found[1]

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one labelled instance; after the switch the mix learns first."""
        if len(self.classes) == 2 and y not in self.classes:
            raise DataError(f"NewSpace is for two labels; {y!r} is a third one after {self.classes}")
        if self._step >= self.switch and len(self.classes) == 2:
            sign = 1.0 if y == self.classes[1] else -1.0
            self._mix.learn([self._loss(sign * margin) for margin in self._margins(x)])
        old, new = self._views(x)
        self._old.learn_one(old, y)
        self._new.learn_one(new, y)
        self._step += 1

    def _loss(self, margin: float) -> float:
        """Compute the hinge loss; for FESL the logistic loss to the base 2, as in the papers."""
        if self.family != "fesl":
            return max(0.0, 1.0 - margin)
        return (math.log1p(math.exp(-abs(margin))) + max(0.0, -margin)) / math.log(2.0)

    def _score(self, x: dict[Any, Any]) -> float:
        """Return the old model's score before the switch, the mixture's after it."""
        old, new = self._margins(x)
        if self._step < self.switch:
            return old
        share = float(self._mix.weights()[0])
        if self.combine == "c":
            return share * old + (1.0 - share) * new
        return old if random.Random(self.seed * 1_000_003 + self._step).random() < share else new

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the logistic function of the score."""
        if len(self.classes) < 2:
            return dict.fromkeys(self.classes, 1.0)
        p = 1.0 / (1.0 + math.exp(-min(max(self._score(x), -700.0), 700.0)))
        return dict(zip(self.classes, (1.0 - p, p), strict=True))
