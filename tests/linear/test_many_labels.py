"""More labels than are learned together: every problem follows its equations, wherever it stands."""

from __future__ import annotations

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
from varifold import AROW, FOBOS, FTRLADP, OGD, OLIDS, OLSF, OLVF, PA, FTRLProximal

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
    follow(learner, OneVsRest(lambda: PlainOLIDS(**form, intercept=ONE, history=history)), instances(140, 30))
    assert len(learner.classes) == 140


@pytest.mark.parametrize("cls", [PA, OGD, AROW, OLVF, OLSF, OLIDS, FOBOS, FTRLProximal, FTRLADP])
def test_the_doors_agree(cls: Any) -> None:
    """A block scores and learns in one pass, a dict predicts and learns in two."""
    rows = [(x, y) for x, y, _ in instances(300, 60)]
    singly, together = cls(), cls()
    answers = []
    for x, y in rows:
        answers.append(singly.predict_one(x))
        singly.learn_one(x, y)
    assert together.predict_learn_many([x for x, _ in rows], [y for _, y in rows]) == answers
    state = [{k: a.tobytes() for k, a in model._engine.dump()[2].items()} for model in (singly, together)]
    assert state[0] == state[1]
