"""Every registered learner, in every form it wants checked, keeps the contract; and the checks can fail."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from river import base as river_base
from river import checks as river_checks
from river import datasets as river_datasets
from river import naive_bayes

import varifold
from varifold import checks
from varifold.base.learner import is_detector
from varifold.errors import ParameterError


def forms() -> Iterator[Any]:
    for name, cls in [*varifold.models.items(), *varifold.detectors.items()]:
        for params in cls._unit_test_params():
            shown = ",".join(f"{k}={v}" for k, v in params.items())
            yield pytest.param(cls(**params), id=f"{name}:{shown}" if shown else name)


@pytest.mark.parametrize("learner", list(forms()))
def test_our_checks(learner: Any) -> None:
    for check in checks.yield_checks(learner):
        if check.__name__ == "check_hash_seed":
            continue  # of all learners at once, below: a process for each takes longer than most other checks
        try:
            check(learner)
        except Exception as error:
            error.add_note(f"in {check.__name__} of {learner!r}")
            raise


def test_no_state_depends_on_the_hash_seed() -> None:
    learners = {}
    for form in forms():
        learner = form.values[0]
        assert "check_hash_seed" in [check.__name__ for check in checks.yield_checks(learner)]
        learners[form.id] = checks.detection.Scoring(learner) if is_detector(learner) else learner
    elsewhere = dict(zip(learners, checks.spaces.outcomes_elsewhere(list(learners.values())), strict=True))
    assert [name for name, learner in learners.items() if checks.spaces.outcome(learner) != elsewhere[name]] == []


class CreditCard:
    """In place of river's data set of this name, which is not part of its package: numbers, 2 % of them far away."""

    def __iter__(self) -> Iterator[tuple[dict[str, float], int]]:
        rng = random.Random(6)
        for t in range(1000):
            odd = t % 50 == 49
            yield {f"V{j}": rng.gauss(4.0 * odd, 1.0) for j in range(6)}, int(odd)

    def take(self, k: int) -> Iterator[tuple[dict[str, float], int]]:
        return itertools.islice(self, k)


@pytest.mark.parametrize("learner", list(forms()))
def test_rivers_checks(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not learner._unit_test_skips()
    monkeypatch.setattr(river_datasets, "CreditCard", CreditCard)
    default = type(learner)(**next(iter(type(learner)._unit_test_params())))
    for check in river_checks.yield_checks(learner):
        if check.__name__ == "check_bounded_memory_growth" and repr(learner) != repr(default):
            continue  # slower than all others together; ours, which is stricter, ran on every form
        try:
            check(learner.clone())
        except Exception as error:
            error.add_note(f"in river's {check.__name__} of {learner!r}")
            raise


# ---------------------------------------------------------------- learners of a third party


class Stranger(river_base.Classifier):
    """A river classifier with the three calls and nothing else; how it works inside is its own affair."""

    def __init__(self, r: float = 1.0) -> None:
        self.r = r
        self._inside = varifold.AROW(r)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        self._inside.learn_one(x, y, w)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        return self._inside.predict_one(x)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        return self._inside.predict_proba_one(x)


class Mutating(varifold.AROW):
    """Learns from what it predicts."""

    def predict_one(self, x: Any) -> Any:
        prediction = super().predict_one(x)
        if prediction is not None:
            self.learn_one(x, prediction)
        return prediction


class Forgetting(varifold.AROW):
    """Loses its weights when pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "engine": self._make_engine().dump()}


class Fragile(varifold.AROW):
    """Dies on an instance without features."""

    def predict_one(self, x: Any) -> Any:
        return super().predict_one(x) if sum(1 for _ in x) / len(x) else None


class ZeroIsAbsent(varifold.AROW):
    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one({k: v for k, v in x.items() if not isinstance(v, float) or v != 0.0}, y, w)


class Ordered(varifold.AROW):
    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one({**x, "first": float(len(repr(next(iter(x), ""))))}, y, w)


class Unweighted(varifold.AROW):
    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one(x, y, 1.0)


class OneDoor(varifold.AROW):
    def learn_many(self, X: Any, y: Any = None, w: Any = None) -> None:
        super().learn_many(X, y, w)
        self.learn_one({}, self.classes[0])


class Hashed(varifold.AROW):
    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one({**x, "hash": float(hash("a word") % 1000)}, y, w)


class Hoarding(varifold.AROW):
    def state_bytes(self) -> dict[str, int]:
        return {**super().state_bytes(), "hoard": self.steps // 400}


class Stubborn(varifold.AROW):
    def predict_one(self, x: Any) -> Any:
        return self.classes[0] if self.classes else None


class Deaf(varifold.NB3):
    """Looks at presence, and does not: every instance is the same to it."""

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one({"here": 1.0}, y, w)


class Illiterate(varifold.AROW):
    """Gives every string value the name of its column."""

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one({k: 1.0 if isinstance(v, str) else v for k, v in x.items()}, y, w)


BROKEN: list[tuple[type[Any], Callable[[Any], None], type[Exception]]] = [
    (Mutating, checks.predictions.check_predict_is_pure, AssertionError),
    (Forgetting, checks.apis.check_copies, AssertionError),
    (Fragile, checks.predictions.check_empty_instance, ZeroDivisionError),
    (Fragile, checks.predictions.check_cold_start, ZeroDivisionError),
    (ZeroIsAbsent, checks.spaces.check_zero_is_a_value, AssertionError),
    (Ordered, checks.spaces.check_key_order, AssertionError),
    (Unweighted, checks.predictions.check_weights, AssertionError),
    (OneDoor, checks.apis.check_many_is_one, AssertionError),
    (Hashed, checks.spaces.check_hash_seed, AssertionError),
    (Hoarding, checks.spaces.check_bounded_memory, AssertionError),
    (Illiterate, checks.spaces.check_string_columns, AssertionError),
    (Stubborn, checks.predictions.check_learns, AssertionError),
    (Stubborn, checks.predictions.check_probabilities, AssertionError),
]


def test_string_columns_whose_indicators_never_vary_are_found() -> None:
    checks.spaces.check_string_columns(varifold.OLIDS())
    with pytest.raises(AssertionError, match="wrong with string columns"):
        checks.spaces.check_string_columns(varifold.OLIDS(indicator_rows="own"))


def test_a_learner_of_presence_has_to_learn_presence() -> None:
    checks.predictions.check_learns(varifold.NB3())
    with pytest.raises(AssertionError, match="where the majority class gives"):
        checks.predictions.check_learns(Deaf())


@pytest.mark.parametrize(("cls", "check", "error"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_learner_is_found(cls: type[Any], check: Callable[[Any], None], error: type[Exception]) -> None:
    check(varifold.AROW())
    with pytest.raises(error):
        check(cls())


def test_check_learner_names_the_check_and_what_the_learner_raised() -> None:
    with pytest.raises(AssertionError, match="check_cold_start fails: the learner raised ZeroDivisionError") as caught:
        checks.check_learner(Fragile())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(AssertionError, match=r"check_predict_is_pure fails: .* \(Predicting changes nothing"):
        checks.check_learner(Mutating())


def test_a_class_or_half_a_learner_is_rejected() -> None:
    with pytest.raises(ParameterError, match="AROW is a class"):
        checks.check_learner(varifold.AROW)
    with pytest.raises(ParameterError, match=r"object has no learn_one\(\)"):
        checks.check_learner(object())


def test_a_class_that_no_other_process_knows_is_reported() -> None:
    learner = type("Nowhere", (Stranger,), {"__module__": "__main__"})()
    vars(sys.modules["__main__"])["Nowhere"] = type(learner)
    with pytest.raises(AssertionError, match=r"is its class in a module.*Nowhere"):
        checks.spaces.check_hash_seed(learner)
    del vars(sys.modules["__main__"])["Nowhere"]


def test_rivers_learn_many_is_not_taken_for_ours() -> None:
    names = {check.__name__ for check in checks.yield_checks(naive_bayes.GaussianNB())}
    assert hasattr(naive_bayes.GaussianNB(), "learn_many")
    assert "check_many_is_one" not in names


def test_a_strangers_learner() -> None:
    names = {check.__name__ for check in checks.yield_checks(Stranger())}
    assert "check_saved" not in names
    assert "check_learns" in names
    checks.check_learner(Stranger())
