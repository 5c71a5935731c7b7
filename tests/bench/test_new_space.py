"""Ensembles whose new model learns the second space from the start."""

import numpy as np
import pytest

from varifold import Block, evaluate, streams
from varifold.base.nested import make_learner
from varifold.bench.new_space import NewSpace
from varifold.bench.tables import find_table
from varifold.errors import DataError, ParameterError


def prepared(scenario, n=400, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) > 0).astype(int).tolist()
    rows = [{f"c{j}": float(row[j]) for j in range(d)} for row in X]
    return streams.prepare(Block.from_dicts(rows, y), scenario, seed=1, shuffle=False)


def labelled(stream):
    labels = list(stream.block.labels.values)
    return [(dict(x), labels[c]) for x, c in zip(stream.block.rows(), stream.block.codes.tolist(), strict=True)]


def test_its_parts_see_what_they_should():
    """The old model is RCW-u on the papers' stream, the new one NCW on the new columns alone, mixed by eq. 8."""
    both, literal = labelled(prepared("evolvable:overlap=200")), labelled(prepared("evolvable:overlap=10"))
    alone = labelled(prepared("evolvable:overlap=200,show=new"))
    model = NewSpace("cwfe", "c", switch=200, horizon=200)
    old, new = (make_learner(f"cwfe:paper,{part},r=0.1") for part in ("part=updated,switch=200", "part=new,switch=400"))
    lost, eta = np.zeros(2), np.sqrt(8 * np.log(2) / 200)
    for t, ((x, y), (seen, _), (fresh, _)) in enumerate(zip(both, literal, alone, strict=True)):
        if t >= 200:
            second = old.classes[1]
            margins = np.array([old.margins_one(seen)[second], new.margins_one(fresh)[second]])
            weights = np.exp(-eta * (lost - lost.min()))
            score = weights @ margins / weights.sum()
            assert model.predict_proba_one(x)[second] == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-12)
            lost += np.maximum(0.0, 1.0 - (1.0 if y == second else -1.0) * margins)
        model.learn_one(x, y)
        old.learn_one(seen, y)
        new.learn_one(fresh, y)


def test_an_early_new_model_helps():
    late = evaluate.prequential(
        make_learner("cwfe:paper,switch=200,horizon=200,r=0.1"), prepared("evolvable:overlap=10")
    )
    early = evaluate.prequential(NewSpace("cwfe", "c", switch=200, horizon=200), prepared("evolvable:overlap=200"))
    assert early.cer < late.cer


@pytest.mark.parametrize(("family", "combine"), [("cwfe", "s"), ("pafe", "c"), ("pafe", "s"), ("fesl", "s")])
def test_the_other_forms_learn(family, combine):
    model = NewSpace(family, combine, switch=500, horizon=500)
    result = evaluate.prequential(model, prepared("evolvable:overlap=500", n=1000))
    assert result.cer < result.majority_cer - 0.05


def test_the_table_runs_it_for_the_ensembles():
    slots = [s for s in find_table("cwfe-2").slots(1) if s.column == "new model from the start"]
    assert {s.method for s in slots} == {f"{f}-{c}" for f in ("FESL", "PAFE", "CWFE") for c in "cs"}
    cells = [c for s in slots for cs in s.cells.values() for c in cs]
    assert all("NewSpace" in c.model and c.scenario.startswith("evolvable:overlap=") for c in cells)
    diabetes = next(c for c in cells if c.data == "diabetes" and "family=cwfe,combine=s" in c.model)
    assert "switch=384,horizon=384" in diabetes.model
    assert diabetes.scenario == "evolvable:overlap=384"


def test_what_it_rejects():
    model = NewSpace(switch=2, horizon=2)
    for y in "ab":
        model.learn_one({"c": 1.0, "new1": 2.0}, y)
    with pytest.raises(DataError, match="two labels"):
        model.learn_one({"new1": 1.0}, "c")
    with pytest.raises(ParameterError, match="'family' parameter of NewSpace"):
        NewSpace("other")
