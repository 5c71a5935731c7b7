"""More labels than are learned together: every problem follows its equations, wherever it stands."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracles.arow import PlainAROW
from tests.oracles.fobos import PlainFOBOS
from tests.oracles.ftrladp import PlainFTRLADP
from tests.oracles.ftrlproximal import PlainFTRLProximal
from tests.oracles.harness import ONE, OneVsRest, follow
from tests.oracles.ogd import PlainOGD
from tests.oracles.olids import PlainOLIDS
from tests.oracles.olvf import PlainOLVF
from tests.oracles.pa import PlainOLSF, PlainPA
from varifold import AROW, FOBOS, FTRLADP, OGD, OLIDS, OLSF, OLVF, OVFIV, PA, Additive, FTRLProximal, to_block

FORMS: list[tuple[Any, int, Callable[[], Any]]] = [
    (PA(C=0.05), 270, lambda: PlainPA("pa1", 0.05)),
    (OGD(c=1.0), 270, lambda: PlainOGD(1.0)),
    (AROW(r=0.5), 140, lambda: PlainAROW(0.5, "diagonal")),
    (OLVF(), 140, lambda: PlainOLVF(0.01, 1e-3, 30.0, 1.0, "kkt")),
    (OLSF(mode="pa1", C=0.05, lam=1.5), 140, lambda: PlainOLSF("pa1", 0.05, 1.5, 1.0, ONE, set())),
    (FOBOS(eta=0.5, lam=1e-3), 140, lambda: PlainFOBOS(0.5, 1e-3, "logistic", intercept=ONE)),
    (FTRLProximal(L1=0.05, L2=0.3), 140, lambda: PlainFTRLProximal(0.1, 1.0, 0.05, 0.3, intercept=ONE)),
    (FTRLADP(decay=0, kappa=0.3), 140, lambda: PlainFTRLADP(decay=0, kappa=0.3)),
]


def instances(labels: int, more: int) -> list[tuple[dict[str, float], int, float]]:
    """Every label once, then some again; a few features of five, and weights."""
    rng = np.random.default_rng(0)
    rows = []
    for step in range(labels + more):
        values = {f"f{j}": float(v) for j, v in enumerate(rng.normal(size=5)) if rng.random() < 0.7} or {"f0": 1.0}
        label = step if step < labels else int(rng.integers(labels))
        rows.append((values, label, float(rng.choice([1.0, 0.5, 2.0]))))
    return rows


@pytest.mark.parametrize(("learner", "labels", "rule"), FORMS, ids=lambda x: type(x).__name__)
def test_every_problem_follows_its_equations(learner: Any, labels: int, rule: Callable[[], Any]) -> None:
    follow(learner, rule, instances(labels, 30))
    assert len(learner.classes) == labels


def test_olids_follows_its_equations() -> None:
    history: list[Any] = []
    form = {"C": 0.01, "theta": 8.0, "lam": 30.0, "B": 1.0}
    learner = OLIDS(**form)
    follow(learner, OneVsRest(lambda: PlainOLIDS(**form, intercept=ONE, history=history)), instances(72, 20))
    assert len(learner.classes) == 72


@pytest.mark.parametrize("cls", [PA, OGD, AROW, OLVF, OLSF, OLIDS, FOBOS, FTRLProximal, FTRLADP, Additive, OVFIV])
def test_the_apis_agree(cls: Any) -> None:
    """A block scores and learns in one pass, a dict predicts and learns in two."""
    rows = [(x, y) for x, y, _ in instances(300, 60)]
    singly, together = cls(), cls()
    predictions = []
    for x, y in rows:
        predictions.append(singly.predict_one(x))
        singly.learn_one(x, y)
    assert together.predict_learn_many([x for x, _ in rows], [y for _, y in rows]) == predictions
    state = [{k: a.tobytes() for k, a in model._engine.dump()[2].items()} for model in (singly, together)]
    assert state[0] == state[1]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("cls", "params"),
    [(OGD, {}), (FOBOS, {}), (FOBOS, {"loss": "hinge"}), (FTRLProximal, {}), (FTRLADP, {}), (AROW, {})],
)
def test_probabilities_are_the_same_when_learning_follows_at_once(
    cls: Any, params: dict[str, Any], biased: bool
) -> None:
    """Where learning takes the sigmoid of every score, the probabilities are made of it."""
    singly, together = (cls(**params, majority_bias=biased) for _ in range(2))
    rows = [(x, y) for x, y, _ in instances(300, 60)]
    _, probabilities = together.run_block(to_block([x for x, _ in rows], [y for _, y in rows]))
    for step, (x, y) in enumerate(rows):
        expected = list(singly.predict_proba_one(x).values())
        assert probabilities[step, : len(expected)].tolist() == expected, f"step {step}"
        singly.learn_one(x, y)


def test_labels_and_features_grow_past_whole_cache_lines() -> None:
    """A copy is laid out from the saved numbers, whose order is another than that in memory; it goes on alike."""
    for cls in (AROW, FTRLProximal, OLIDS):
        model, rng = cls(), np.random.default_rng(1)
        for step in range(120):
            names = rng.choice(2 + 2 * step, size=min(4, 2 + step), replace=False)
            model.learn_one({f"f{j}": float(rng.normal()) for j in names}, step % (1 + step // 2))
            if step % 20 == 19:
                model = pickle.loads(pickle.dumps(model))
        again = type(model).from_bytes(model.to_bytes())
        for twin in (model, again):
            twin.learn_one({"f0": 1.0, "new": 2.0}, "another")
        state = [{k: a.tobytes() for k, a in twin._engine.dump()[2].items()} for twin in (model, again)]
        assert state[0] == state[1]


def step_by_hand(
    arrays: dict[str, Any], edges: Any, seen: Any, x: dict[int, float], own: int, r: float
) -> tuple[Any, int]:
    """State of an Additive learner after a diagonal AROW step over values and bins, and how many were wrong."""
    state = arrays["model.state"].copy()
    inputs = []
    for slot, value in sorted(x.items()):
        inputs.append((slot, 0, value))
        if slot and seen[slot] >= 4:
            inputs.append((slot, 2 * (1 + int((value > edges[slot]).sum())), 1.0))
    target = np.where(np.arange(state.shape[1]) == own, 1.0, -1.0)
    score = sum(state[slot, :, at] * v for slot, at, v in inputs)
    loss = np.maximum(0.0, 1.0 - target * score)
    step = loss * target / (sum(v * v / (1.0 + state[slot, :, at + 1]) for slot, at, v in inputs) + r)
    for slot, at, v in inputs:
        state[slot, :, at] += step * v / (1.0 + state[slot, :, at + 1])
        state[slot, :, at + 1] += np.where(loss > 0.0, v * v / r, 0.0)
    return state, int((loss > 0.0).sum())


def test_additive_follows_its_equations() -> None:
    """Problems are updated together where many are wrong and one by one where few are; both are the same step."""
    labels, rng = 40, np.random.default_rng(0)
    model = Additive(r=0.5, scale="none")
    centres = rng.normal(size=(labels, 6)) * 3.0
    wrong = []
    for step in range(400):
        label = step if step < labels else int(rng.integers(labels))
        x = {f"f{j}": float(v) for j, v in enumerate(centres[label] + 0.1 * rng.normal(size=6))}
        before = model._engine.dump()[2]
        model.learn_one(x, label)
        if step < labels:
            continue
        after = model._engine.dump()[2]
        slots = {0: 1.0, **{model._engine.space.id_of(name): v for name, v in x.items()}}
        expected, count = step_by_hand(before, after["model.edge"], after["model.count"], slots, label, 0.5)
        np.testing.assert_allclose(after["model.state"], expected, rtol=1e-9, atol=1e-12, err_msg=f"step {step}")
        wrong.append(count)
    assert min(wrong) < labels / 8 <= max(wrong)
