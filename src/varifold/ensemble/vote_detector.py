"""VoteDetector: average the surprise of several anomaly detectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

from river import base as river_base

from varifold._engine.conformal.alarms import Alarms
from varifold.base import files, frames
from varifold.base.blocks import to_block
from varifold.base.detector import VaryingDetector
from varifold.base.params import Real, validate
from varifold.base.saving import Saved, pack_learners, unpack_learners
from varifold.ensemble.vote import checked_learners

METHOD = "votedetector"
_ALARMS = "alarms."


class VoteDetector(Saved, river_base.AnomalyDetector):
    """An ensemble that averages the surprise of its detectors, minus the logarithm of their p-values.

    For your own choice of detectors, such as a `CopulaDetector` with a `PresenceDetector`, so that an unusual absence
    is an anomaly as well; `AutoDetector` is a fixed choice in compiled code. Every detector learns every instance.

    Parameters
    ----------
    learners
        At least one detector of the library; they are used as they are, not copied.
    rate
        Share of the instances that are alarms, in (0, 1], where no other rate is given.

    Examples
    --------
    >>> from varifold import CopulaDetector, PresenceDetector, VoteDetector
    >>> model = VoteDetector([CopulaDetector(), PresenceDetector()])
    >>> for step in range(500):
    ...     speed = step * 37 % 100
    ...     model.learn_one({"speed": speed, "flow": 2 * speed + step % 5})
    >>> usual, broken, silent = {"speed": 80, "flow": 162}, {"speed": 80, "flow": 30}, {"speed": 80}
    >>> [model.is_anomaly_one(x) for x in (usual, broken, silent)]
    [False, True, True]

    """

    _task = "detection"

    def __init__(self, learners: Iterable[Any], *, rate: float = 0.01) -> None:
        validate("VoteDetector", {"rate": Real(0, 1, open_low=True)}, {"rate": rate})
        self.learners = checked_learners(
            "VoteDetector", learners, "detectors", lambda one: isinstance(one, VaryingDetector)
        )
        self.rate = rate
        self.reading: Mapping[str, Any] = {}
        self._alarms = Alarms()

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance with every detector; an instance that one of them rejects is learned by none."""
        self._check_one(x)
        self._alarms.add(self.score_one(x))
        for learner in self.learners:
            learner.learn_one(x)

    def _check_one(self, x: Mapping[Any, Any]) -> None:
        for learner in self.learners:
            learner._check_one(x)

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the mean surprise of the detectors: the larger, the more unusual. Changes nothing."""
        return math.fsum(map(_surprise, self._p_values(x))) / len(self.learners)

    def _p_values(self, x: Mapping[Any, Any]) -> list[float]:
        return [learner.p_value_one(x) for learner in self.learners]

    def p_value_one(self, x: Mapping[Any, Any]) -> float:
        """Return the smallest rate of alarms at which the instance is one. Changes nothing."""
        return self.score_and_p_value_one(x)[1]

    def score_and_p_value_one(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Return what `score_one` and `p_value_one` return, at the cost of one of them. Changes nothing."""
        score = self.score_one(x)
        return score, self._alarms.p_value_of(score)

    def is_anomaly_one(self, x: Mapping[Any, Any], rate: float | None = None) -> bool:
        """Return whether the instance is an alarm, at the parameter `rate` or this rate. Changes nothing."""
        rate = self.rate if rate is None else rate
        validate("VoteDetector.is_anomaly_one", {"rate": Real(0, 1)}, {"rate": rate})
        return self.p_value_one(x) <= rate

    def explain_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the contribution of each feature to the score, largest first; they sum to ``score_one(x)``.

        The surprise of a detector is split in proportion to what raises its score.
        """
        parts: dict[Any, float] = {}
        for learner, p in zip(self.learners, self._p_values(x), strict=True):
            raising = {name: part for name, part in learner.explain_one(x).items() if part > 0.0}
            total = math.fsum(raising.values())
            for name, part in (raising or {"(no single feature)": 1.0}).items():
                share = part / total if raising else 1.0
                parts[name] = parts.get(name, 0.0) + _surprise(p) * share / len(self.learners)
        return dict(sorted(((name, part) for name, part in parts.items() if part), key=lambda item: -item[1]))

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Any) -> None:
        """Learn instances in order; all are checked before anything is learned."""
        rows = list(to_block(X).rows())
        for x in rows:
            self._check_one(x)
        for x in rows:
            self.learn_one(x)

    def score_many(self, X: Any) -> Any:
        """Return what `score_one` returns for each instance: a Series or an Array for a frame, else a list."""
        return frames.label_column([self.score_one(x) for x in to_block(X).rows()], X)

    # ------------------------------------------------------------------ copies and files

    @property
    def steps(self) -> int:
        """Number of instances learned so far."""
        return int(self.learners[0].steps)

    def _get_params(self) -> dict[str, Any]:
        return {"learners": self.learners, "rate": self.rate}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Make a vote of the given detectors, or else of clones, which have learned nothing."""
        params = {"learners": [learner.clone() for learner in self.learners], "rate": self.rate, **(new_params or {})}
        return type(self)(**params)

    def _header(self) -> dict[str, Any]:
        return {"method": METHOD, "params": {"rate": self.rate}}

    def _content(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return all detectors as files, in their order, and the last scores."""
        alarms = {_ALARMS + name: array for name, array in self._alarms.dump().items()}
        return self._header(), {**pack_learners([learner.to_bytes() for learner in self.learners]), **alarms}

    @classmethod
    def _from_content(cls, header: Mapping[str, Any], arrays: files.Arrays) -> Self:
        made = cls([VaryingDetector.from_bytes(part) for part in unpack_learners(arrays)], **header["params"])
        held = {name.removeprefix(_ALARMS): array for name, array in arrays.items() if name.startswith(_ALARMS)}
        made._alarms.fill(held)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_alarms": self._alarms.dump()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._alarms = Alarms()
        self._alarms.fill(state["_alarms"])


def _surprise(p: float) -> float:
    return -math.log(p)
