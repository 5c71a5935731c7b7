"""Importances where the truth is known: what decides, what is noise, what is only present, what vanished."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import varifold
from varifold.base.importances import permuted
from varifold.cli import main
from varifold.errors import DataError, ParameterError
from varifold.evaluate import prequential


def customers(n: int, seed: int = 1) -> tuple[list[dict[str, Any]], list[str]]:
    """`load` decides, `heat` helps and is often absent; `plan`, `city` (300 values) and `noise` say nothing."""
    rng = random.Random(seed)
    rows, labels = [], []
    for _ in range(n):
        load, heat = rng.gauss(0, 1), rng.gauss(0, 1)
        labels.append("churn" if load + 0.5 * heat + 0.7 * rng.gauss(0, 1) > 0.6 else "stay")
        x = {"load": load, "plan": rng.choice("abcd"), "city": f"c{rng.randrange(300)}", "noise": rng.gauss(0, 1)}
        rows.append(x if rng.random() < 0.2 else x | {"heat": heat})
    return rows, labels


@pytest.mark.parametrize("make", [varifold.AutoClassifier, varifold.AROW, varifold.GaussianNB])
def test_noise_is_found_to_be_noise_on_instances_not_learned(make: Any) -> None:
    rows, labels = customers(2500)
    learner = make()
    learner.learn_many(rows[:2000], labels[:2000])
    before = learner.to_bytes()
    found = learner.column_importances(rows[2000:], labels[2000:])
    assert list(found)[:2] == ["load", "heat"]
    assert {name for name, each in found.items() if each.matters} == {"load", "heat"}
    assert found["load"].loss > 5 * abs(found["city"].loss)
    assert found["heat"].present == pytest.approx(0.8, abs=0.05)
    assert learner.to_bytes() == before
    weights = {name: f.weight for name, f in learner.features.items()}
    if make is varifold.AutoClassifier:  # what made a measure necessary: the weights are mostly the noise's
        assert sum(w for name, w in weights.items() if str(name).startswith("city=")) > 0.5 * sum(weights.values())


def test_along_a_stream_importances_follow_what_happens_and_leave_the_run_as_it_is() -> None:
    rows, labels = customers(4000)
    for x in rows[2000:]:
        x["gauge"] = x.pop("load")  # the sensor was replaced
    stream = list(zip(rows, labels, strict=True))
    plain = prequential(varifold.AROW(), stream)
    result = prequential(varifold.AROW(), stream, track="permutation")
    assert result.confusion.tolist() == plain.confusion.tolist()
    early, late = result.curve.importances[90], result.curve.importances[-1]
    assert max(early, key=early.__getitem__) == "load"
    assert "gauge" not in early
    assert max(late, key=late.__getitem__) == "gauge"
    assert result.importances["gauge"].matters
    assert not result.importances["city"].matters
    assert not result.importances["noise"].matters


def test_which_column_is_there_can_matter_by_itself() -> None:
    rng = random.Random(2)
    labels = [rng.choice(["ill", "well"]) for _ in range(1500)]
    rows = [{"a": rng.gauss(0, 1)} | ({"test": 1.0} if (y == "ill") == (rng.random() < 0.9) else {}) for y in labels]
    learner = varifold.AutoClassifier(budget="fast")
    learner.learn_many(rows[:1000], labels[:1000])
    found = learner.column_importances(rows[1000:], labels[1000:])
    assert found["test"].matters
    assert found["test"].loss > 0.3


def test_permuting_moves_whole_cells_and_nothing_else() -> None:
    rows = [{"a": 1.0, "b": "x"}, {"a": 2.0}, {"b": "y", "c": 3.0}, {}]
    block = varifold.to_block(rows, [0, 1, 0, 1])
    column = block.vocabulary.column_array()[block.indices]
    mask = column == block.vocabulary.column_of(block.vocabulary.id_of("b=x"))
    found = [dict(row) for row in permuted(block, mask, np.array([2, 0, 3, 1])).rows()]
    assert found == [{"a": 1.0, "b": "y"}, {"a": 2.0, "b": "x"}, {"c": 3.0}, {}]


def test_what_cannot_be_measured_is_rejected() -> None:
    rows, labels = customers(50)
    learner = varifold.AROW()
    learner.learn_many(rows, labels)
    with pytest.raises(DataError, match="none of the 50 has a label"):
        learner.column_importances(rows)
    with pytest.raises(ParameterError, match="'repeats' parameter of column_importances"):
        learner.column_importances(rows, labels, repeats=0)
    with pytest.raises(DataError, match=r"it knows \['churn', 'stay'\], and the instances have \['other'\]"):
        learner.column_importances(rows[:5], ["other"] * 5)
    with pytest.raises(ParameterError, match="'importances', 'permutation'"):
        prequential(varifold.AROW(), [], track="weights")
    from river import naive_bayes

    with pytest.raises(ParameterError, match="a learner of varifold"):
        prequential(naive_bayes.GaussianNB(), [], track="permutation")


def test_explanations_by_column_add_up_to_the_same_score() -> None:
    rows, labels = customers(800)
    for learner in (varifold.AutoClassifier(budget="fast"), varifold.AROW()):
        learner.learn_many(rows, labels)
        x = rows[-1]
        by_feature, by_column = learner.explain_one(x), learner.explain_one(x, by_column=True)
        assert sum(by_column.values()) == pytest.approx(sum(by_feature.values()))
        assert {"load", "plan", "city"} <= set(by_column)
        assert not any("=" in str(name) for name in by_column)
        assert by_column["city"] == pytest.approx(
            sum(part for name, part in by_feature.items() if str(name).startswith("city="))
        )


def test_the_command_shows_and_draws_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, labels = customers(1500)
    file, picture = tmp_path / "rows.csv", tmp_path / "importances.png"
    pd.DataFrame(rows).assign(y=labels).to_csv(file, index=False)
    words = ["run", str(file), "--target", "y", "--model", "arow"]
    assert main([*words, "--importances", str(picture)]) == 0
    shown = capsys.readouterr().out
    table = shown[shown.index("log loss without it") :]
    assert table.index("load ") < table.index("city ")
    assert "no loss seen" in next(line for line in table.splitlines() if line.startswith("city"))
    assert picture.stat().st_size > 10_000
    assert main([*words, "--importances", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["importances"]
    assert found[0]["column"] == "load"
    assert found[0]["matters"] is True


def test_a_stream_of_eighty_rows_has_importances_too() -> None:
    rows, labels = customers(80)
    found = prequential(varifold.AROW(), list(zip(rows, labels, strict=True)), track="permutation").importances
    assert set(found) == {"load", "heat", "plan", "city", "noise"}
    assert next(iter(found)) == "load"


def test_a_regressors_columns_are_worth_what_errors_grow_by() -> None:
    rng = random.Random(4)
    rows, targets = [], []
    for _ in range(1500):
        x = {"load": rng.gauss(0, 1), "plan": rng.choice("ab"), "noise": rng.gauss(0, 1)}
        rows.append(x)
        targets.append(100.0 + 20.0 * x["load"] + (8.0 if x["plan"] == "a" else 0.0) + rng.gauss(0, 1))
    learner = varifold.AROWRegressor()
    learner.learn_many(rows[:1000], targets[:1000])
    before = learner.to_bytes()
    found = learner.column_importances(rows[1000:], targets[1000:])
    assert list(found) == ["load", "plan", "noise"]
    assert [each.matters for each in found.values()] == [True, True, False]
    assert found["load"].loss == pytest.approx(20.0 * 2.0 / np.sqrt(np.pi), rel=0.15), "mean difference of two draws"
    assert learner.to_bytes() == before
    with pytest.raises(DataError, match="none of the 3 has one: pass y"):
        learner.column_importances(rows[:3])


def test_a_regressor_along_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = customers(1500)
    targets = [3.0 * x["load"] + x.get("heat", 0.0) for x in rows]
    stream = list(zip(rows, targets, strict=True))
    plain = prequential(varifold.AROWRegressor(), stream)
    result = prequential(varifold.AROWRegressor(), stream, track="permutation")
    assert result.mae == pytest.approx(plain.mae, rel=1e-12)
    assert list(result.importances)[:2] == ["load", "heat"]
    assert 2.5 < result.importances["load"].loss < 4.5  # E|3 (u - v)| of two normal numbers is 3.4
    assert not result.importances["noise"].loss > 0.1

    source = tmp_path / "rows.csv"
    pd.DataFrame(rows).assign(price=targets).to_csv(source, index=False)
    options = ["--target", "price", "--model", "arow", "--importances", str(tmp_path / "picture.png")]
    assert main(["run", str(source), *options, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["importances"]
    assert [each["column"] for each in found[:2]] == ["load", "heat"]
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    assert main(["run", str(source), *options]) == 0
    assert "absolute error without it" in capsys.readouterr().out


def test_one_learner_per_key_along_a_stream() -> None:
    rows, labels = customers(600)
    keyed = [({**x, "device": i % 2}, y) for i, (x, y) in enumerate(zip(rows, labels, strict=True))]
    result = prequential(varifold.PerKey(varifold.AROW(), key="device"), keyed, track="permutation")
    assert next(iter(result.importances)) == "load"
