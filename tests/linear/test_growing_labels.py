"""Labels and features that keep growing: what a rule keeps per problem grows along and stays what a file would hold."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

import varifold

FORMS: list[tuple[Any, dict[str, Any]]] = [
    (varifold.OLVF, {"B": 0.4, "lam": 1.0}),
    (varifold.OLSF, {"B": 0.4, "lam": 1.0}),
    (varifold.OLIDS, {"B": 0.4, "lam": 1.0}),
    (varifold.AROW, {"covariance": "full"}),
    (varifold.AROW, {"covariance": "full", "max_dense": 12}),
    (varifold.OCDS, {"max_dense": 12}),
    (varifold.Additive, {"max_binned": 12}),
]


def instances(count: int) -> list[tuple[dict[str, float], str]]:
    rng = random.Random(7)
    found = []
    for step in range(count):
        label = rng.randrange(1 + step // 12)
        found.append(({f"f{rng.randrange(4 + step // 6)}": rng.gauss(label, 1.0) for _ in range(4)}, f"y{label}"))
    return found


def state(model: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model._engine.dump()[2].items()}


@pytest.mark.parametrize(("cls", "params"), FORMS)
def test_a_copy_made_from_the_saved_state_goes_on_alike(cls: Any, params: dict[str, Any]) -> None:
    """A copy builds heaps and matrices from the saved numbers; the original carried its own through every growth."""
    model = cls(**params)
    rows = instances(160)
    for step, (x, y) in enumerate(rows):
        if step % 10 == 0:
            twin = copy.deepcopy(model)
            for later, label in rows[step : step + 10]:
                twin.learn_one(later, label)
        model.learn_one(x, y)
        if step % 10 == 9:
            assert state(twin) == state(model)
    assert len(model.classes) > 10


@pytest.mark.parametrize("cls", [varifold.OLVF, varifold.OLSF, varifold.OLIDS])
def test_every_problem_keeps_its_share_of_weights(cls: Any) -> None:
    model = cls(B=0.4, lam=1.0)
    for x, y in instances(160):
        model.learn_one(x, y)
    known = len(model.features)
    weights = model._engine.dump()[2]["model.state"][1:, :, 0]
    assert weights.shape[1] == len(model.classes) > 10
    assert ((weights != 0.0).sum(axis=0) <= int(0.4 * known)).all()
    assert (weights != 0.0).any(axis=0).all()


@pytest.mark.parametrize("cls", [varifold.AROW, varifold.OLVF, varifold.GaussianNB, varifold.NB3])
def test_capacity_for_labels_exceeds_the_need_by_half_at_most(cls: Any) -> None:
    model = cls()
    for label in range(400):
        model.learn_one({"a": label % 7, "b": label % 11}, label)
    arrays = {name: a for name, a in model._engine.dump()[2].items() if name.startswith("model.")}
    widest = max(arrays.values(), key=lambda a: a.nbytes)
    slots = len(widest)
    capacity = 2 * max(slots, 64)  # at most
    assert model._engine.nbytes()["model"] < 1.6 * capacity * widest.nbytes / slots
