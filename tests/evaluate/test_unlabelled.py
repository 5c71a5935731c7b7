"""Instances without a label: in every way in, and what they are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import varifold
from varifold import streams
from varifold.checks.material import state
from varifold.errors import DataError, LabelError, ParameterError, VarifoldError
from varifold.evaluate import prequential

LEARNS = {"gaussiannb": varifold.GaussianNB, "ovfm": varifold.OVFM}


def pairs(n: int = 200, seed: int = 0) -> list[tuple[dict[str, Any], Any]]:
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        kind = int(rng.random() < 0.4)
        x: dict[str, Any] = {"a": rng.normal() + 2.0 * kind, "b": rng.normal() - kind}
        if t > n // 3:
            x["c"] = rng.normal() + kind
        rows.append(({k: v for k, v in x.items() if rng.random() < 0.7}, ["no", "yes"][kind]))
    return rows


def few(rows: list[Any], missing: Any = None) -> list[Any]:
    return [(x, y if t % 5 == 0 else missing) for t, (x, y) in enumerate(rows)]


def test_traits_name_the_learners_that_learn_without_labels():
    found = {name for name, make in varifold.models.items() if make().traits.unlabelled == "learned"}
    assert found == {"gaussiannb", "ovfm"}
    assert varifold.AutoClassifier(unlabelled="learn").traits.unlabelled == "learned"
    assert varifold.AutoRegressor(unlabelled="learn").traits.unlabelled == "learned"
    assert varifold.CopulaRegressor(unlabelled="learn").traits.unlabelled == "learned"
    with pytest.raises(ParameterError, match="'unlabelled' parameter of AutoClassifier"):
        varifold.AutoClassifier(unlabelled="maybe")


@pytest.mark.parametrize("name", [*LEARNS, "auto"])
def test_pairs_files_and_withheld_labels_lead_to_one_state(name, tmp_path):
    def make() -> Any:
        return varifold.AutoClassifier(unlabelled="learn") if name == "auto" else LEARNS[name]()

    rows = few(pairs())
    one, by_pairs, by_file, by_delay = make(), make(), make(), make()
    for x, y in rows:
        one.learn_one(x, y)
    prequential(by_pairs, rows)
    path = tmp_path / "rows.csv"
    lines = [",".join([*(repr(x[k]) if k in x else "" for k in "abc"), y or ""]) for x, y in rows]
    path.write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    result = prequential(by_file, streams.read(path, target="y", unlabelled="keep"))
    assert result.unlabelled == 160
    # labels that exist but never arrive are scored and not learned
    arrives = iter([0 if y else None for _, y in rows])
    result = prequential(by_delay, pairs(), delay=lambda x, y: next(arrives))
    assert (result.unlabelled, result.scored) == (0, 200)
    assert state(one) == state(by_pairs) == state(by_file) == state(by_delay)
    assert one.steps == 200


def test_a_scenario_withholds_labels_and_scores_them_all():
    block = varifold.to_block([x for x, _ in pairs(2000)], [y for _, y in pairs(2000)])
    prepared = streams.prepare(block, "labels:0.1", seed=3)
    assert prepared.block.labelled.all()
    model = varifold.OLVF()
    result = prequential(model, prepared)
    assert (result.scored, result.unlabelled) == (2000, 0)
    assert 150 < model.steps < 250
    again = varifold.OLVF()
    prequential(again, streams.prepare(block, "labels:0.1", seed=3))
    assert again.to_bytes() == model.to_bytes()
    other = varifold.OLVF()
    prequential(other, streams.prepare(block, "labels:0.1", seed=4))
    assert other.to_bytes() != model.to_bytes()
    with pytest.raises(ParameterError, match="share of labels must be from 0 to 1"):
        streams.prepare(block, "labels:2")


def test_a_scenario_withholds_the_same_labels_from_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,y\n" + "".join(",".join([*(repr(x.get(k, "")) for k in "abc"), y]).replace("''", "") + "\n"
                                           for x, y in pairs(500)))  # fmt: skip
    stream = streams.vary(streams.read(path, target="y"), "labels:0.2", seed=1)
    model = varifold.OLVF()
    assert prequential(model, stream).scored == 500
    assert 60 < model.steps < 140


def test_with_all_labels_nothing_changes():
    learns, ignores = varifold.AutoClassifier(unlabelled="learn"), varifold.AutoClassifier()
    for x, y in pairs(300):
        assert learns.predict_proba_one(x) == ignores.predict_proba_one(x)
        learns.learn_one(x, y)
        ignores.learn_one(x, y)
    assert state(learns) == state(ignores)


@pytest.mark.parametrize("make", [varifold.GaussianNB, varifold.OVFM, varifold.AROW])
def test_what_is_wrong_is_rejected_without_a_label_too(make):
    model = make()
    for x, y in pairs(30):
        model.learn_one(x, y)
    before = model.to_bytes()
    for x, y, w in (
        ({"a": math.inf}, None, 1.0),
        ({"a": 1.0}, None, -1.0),
        ({"new": "x", "new=x": 1.0}, None, 1.0),
        ({"a": 1.0}, ["a list"], 1.0),
    ):
        with pytest.raises(VarifoldError, match=r"is -?inf|weight|both a feature|cannot be hashed"):
            model.learn_one(x, y, w)
    with pytest.raises(DataError, match="y is missing; pass a label per instance, None where it is not known"):
        model.learn_many([{"a": 1.0}])
    assert model.to_bytes() == before


def test_frames_and_series_with_missing_labels():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = few(pairs())
    frame = pd.DataFrame([x for x, _ in rows], columns=list("abc"))
    one = varifold.GaussianNB()
    for x, y in rows:
        one.learn_one(x, y)
    for labels in (
        [y for _, y in rows],
        pd.Series([y for _, y in rows], dtype="string"),
        pl.Series([y for _, y in rows]),
        np.array([y for _, y in rows], dtype=object),
    ):
        many = varifold.GaussianNB()
        many.learn_many(frame, labels)
        assert state(many) == state(one)


def test_only_a_missing_label_is_no_label():
    with pytest.raises(LabelError, match="cannot be hashed"):
        varifold.to_block([{"a": 1.0}], [["a list"]])
    block = varifold.to_block([{"a": 1.0}] * 4, ["x", None, math.nan, np.float32("nan")])
    assert block.y == ["x", None, None, None]


def test_instances_without_a_label_help_where_classes_are_clusters():
    """Four labels and 600 instances of two Gaussian classes: EM finds what the labels alone do not show."""
    rng = np.random.default_rng(1)
    errors = {True: 0, False: 0}
    for _ in range(10):
        kinds = rng.integers(0, 2, 600)
        rows = [{f"f{j}": float(rng.normal() + 1.2 * k) for j in range(6)} for k in kinds]
        for learn in errors:
            model = varifold.GaussianNB()
            for t, (x, k) in enumerate(zip(rows, kinds.tolist(), strict=True)):
                errors[learn] += t > 300 and model.predict_one(x) != k
                if t < 4:
                    model.learn_one(x, t % 2 if k == t % 2 else k)
                elif learn:
                    model.learn_one(x, None)
    assert errors[True] < 0.9 * errors[False]
