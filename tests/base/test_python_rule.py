"""Learners in plain Python: checked like every other, in files and pickles, with errors that are reported."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import base as river_base

import varifold
from varifold import OVFIV, PythonRule
from varifold.cli import main
from varifold.errors import BusyLearnerError, DataError, ModelFileError, ParameterError


class Perceptron(PythonRule):
    """Multi-class perceptron; weights by label and feature."""

    rate: float = 1.0

    def start(self) -> None:
        self.weights: dict[Any, dict[Any, float]] = {}

    def scores(self, x: dict[Any, float]) -> dict[Any, float]:
        return {y: sum(w.get(f, 0.0) * v for f, v in x.items()) for y, w in self.weights.items()}

    def learn(self, x: dict[Any, float], y: Any, w: float) -> None:
        self.weights.setdefault(y, {})
        margins = self.scores(x)
        rival = max((label for label in margins if label != y), key=lambda label: margins[label], default=None)
        if rival is None or margins[y] > margins[rival] + 1.0:
            return
        for label, sign in ((y, 1.0), (rival, -1.0)):
            weights = self.weights[label]
            for f, v in x.items():
                weights[f] = weights.get(f, 0.0) + sign * self.rate * w * v

    def forget(self, name: Any) -> None:
        for weights in self.weights.values():
            weights.pop(name, None)

    def weight(self, name: Any) -> float:
        return sum(abs(weights.get(name, 0.0)) for weights in self.weights.values())

    def explain(self, x: dict[Any, float], label: Any) -> dict[Any, float]:
        return {f: self.weights[label].get(f, 0.0) * v for f, v in x.items()}


class Saved(Perceptron):
    """A perceptron that model files can hold: weights as an array, names and labels as JSON."""

    def dump(self) -> tuple[dict[str, Any], Any]:
        names = list(dict.fromkeys(f for weights in self.weights.values() for f in weights))
        table = [[weights.get(f, 0.0) for f in names] for weights in self.weights.values()]
        held = [[f in weights for f in names] for weights in self.weights.values()]
        shape = (len(self.weights), len(names))
        arrays = {
            "weights": np.array(table, dtype=float).reshape(shape),
            "held": np.array(held, dtype=np.uint8).reshape(shape),
        }
        return arrays, {"names": names, "classes": [self.classes.index(y) for y in self.weights]}

    def fill(self, arrays: dict[str, Any], data: Any) -> None:
        table, held, names = arrays["weights"], arrays["held"], data["names"]
        if not table.shape == held.shape == (len(data["classes"]), len(names)):
            raise ValueError(f"weights of the shape {table.shape} for {len(names)} names")
        self.weights = {
            self.classes[c]: {f: w for f, w, there in zip(names, row, mask, strict=True) if there}
            for c, row, mask in zip(data["classes"], table.tolist(), held.tolist(), strict=True)
        }


ROWS = [({"a": float(i % 7), "b": float(-i % 5), "c": "xyz"[i % 3]}, "pqr"[i % 3]) for i in range(120)]


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        pytest.param(learner, check, id=f"{type(learner).__name__}-{check.__name__}")
        for learner in (Perceptron(), Saved(rate=0.5, max_features=20, evict="lightest"))
        for check in varifold.checks.yield_checks(learner)
    ],
)
def test_the_contract_holds(learner: Any, check: Any) -> None:
    check(learner)


def test_files_are_checked_only_for_a_rule_with_dump_and_fill() -> None:
    expected = {True: set(varifold.checks.FILES), False: set()}
    for learner in (Perceptron(), Saved()):
        assert set(varifold.checks.yield_checks(learner)) & set(varifold.checks.FILES) == expected[learner._saves()]
    varifold.checks.check_learner(Perceptron())


def test_parameters_are_the_annotated_attributes() -> None:
    learner = Perceptron(0.25, scale="none")
    assert learner.rate == 0.25
    assert learner.clone(new_params={"rate": 2.0})._get_params() == learner._get_params() | {"rate": 2.0}
    assert "weights" not in learner._get_params()


def test_the_rule_sees_scaled_values_names_and_labels() -> None:
    seen: list[Any] = []

    class Watch(Perceptron):
        def learn(self, x: dict[Any, float], y: Any, w: float) -> None:
            seen.append((x, y, w))

    learner = Watch(scale="none")
    learner.learn_one({"b": 2.0, "a": "red", "gone": None, 7: True}, ("a", 1), w=3.0)
    assert seen == [({"(intercept)": 1.0, 7: 1.0, "a=red": 1.0, "b": 2.0}, ("a", 1), 3.0)]
    Watch(fit_intercept=False).learn_many([{"b": 2.0}], ["y"])
    assert "(intercept)" not in seen[-1][0]


def test_it_learns() -> None:
    learner = Perceptron()
    rng = np.random.default_rng(0)
    x = [{"a": float(v), "b": float(rng.normal())} for v in rng.normal(size=400)]
    y = [row["a"] > 0 for row in x]
    predictions = learner.predict_learn_many(x, y)
    assert np.mean([a == b for a, b in zip(predictions[200:], y[200:], strict=True)]) > 0.9


def test_explanations_name_the_features() -> None:
    learner = Perceptron()
    learner.learn_many([x for x, _ in ROWS], [y for _, y in ROWS])
    x = {"a": 3.0, "c": "x"}
    parts = learner.explain_one(x, "p")
    assert sum(parts.values()) == pytest.approx(learner.margins_one(x)["p"])
    assert set(parts) == {"a", "c=x", "(intercept)"}


def test_evicted_features_are_forgotten() -> None:
    learner = Perceptron(max_features=4)
    for i in range(30):
        learner.learn_one({f"f{i}": 1.0, f"g{i}": -1.0}, i % 2)
    held = {f for weights in learner.weights.values() for f in weights} - {"(intercept)"}
    assert held <= set(learner.features)
    assert len(learner.features) <= 4


def test_pickles_and_copies_go_their_own_way() -> None:
    learner = Perceptron()
    learner.learn_many([x for x, _ in ROWS[:60]], [y for _, y in ROWS[:60]])
    twins = [pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner), copy.copy(learner)]
    assert all(twin.weights == learner.weights for twin in twins)
    before = copy.deepcopy(learner.weights)
    for twin in twins:
        twin.learn_many([x for x, _ in ROWS[60:]], [y for _, y in ROWS[60:]])
    assert learner.weights == before
    learner.learn_many([x for x, _ in ROWS[60:]], [y for _, y in ROWS[60:]])
    assert all(twin.weights == learner.weights for twin in twins)


def test_a_file_needs_dump_and_fill(tmp_path: Path) -> None:
    learner = Perceptron()
    learner.learn_one({"a": 1.0}, "x")
    with pytest.raises(ModelFileError, match=r"define dump\(\) and fill\(\), or pickle"):
        learner.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_command_line_reports_it_before_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = f"{__name__}:Perceptron"
    assert main(["run", "no-such-file.csv", "--target", "y", "--model", where, "--save", str(tmp_path / "m")]) == 1
    assert "define dump() and fill()" in capsys.readouterr().err


def test_saved_and_loaded_by_its_class(tmp_path: Path) -> None:
    learner = Saved(rate=0.5)
    learner.learn_many([x | {3: 1.0} for x, _ in ROWS], [y for _, y in ROWS])
    learner.save(tmp_path / "model")
    again = Saved.load(tmp_path / "model")
    assert (again.rate, again.weights, again.classes) == (0.5, learner.weights, learner.classes)
    with pytest.raises(ModelFileError, match="not registered"):
        varifold.load(tmp_path / "model")


def test_a_registered_class_is_found_by_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(varifold.models, "_where", dict(varifold.models._where))
    varifold.models.register("savedperceptron", Saved)
    learner = Saved()
    learner.learn_many([x for x, _ in ROWS], [y for _, y in ROWS])
    learner.save(tmp_path / "model")
    again = varifold.load(tmp_path / "model")
    assert type(again) is Saved
    assert again.weights == learner.weights


def test_a_file_that_does_not_fit_is_rejected(tmp_path: Path) -> None:
    class Shrunk(Saved):
        def dump(self) -> tuple[dict[str, Any], Any]:
            arrays, data = super().dump()
            return {**arrays, "weights": arrays["weights"][:, :-1]}, data

    learner = Shrunk()
    learner.learn_one({"a": 1.0}, "x")
    learner.learn_one({"a": -1.0}, "y")

    def save_and_load() -> None:
        learner.save(tmp_path / "model")
        Shrunk.load(tmp_path / "model")

    with pytest.raises(ModelFileError, match="weights of the shape"):
        save_and_load()


class Failing(Perceptron):
    """Raises in learn() at an instance with a certain feature."""

    def learn(self, x: dict[Any, float], y: Any, w: float) -> None:
        if "stop" in x:
            raise KeyboardInterrupt
        if "fail" in x:
            raise ZeroDivisionError("inside")
        super().learn(x, y, w)


@pytest.mark.parametrize(("name", "error"), [("fail", ZeroDivisionError), ("stop", KeyboardInterrupt)])
def test_an_error_inside_is_raised_at_its_row(name: str, error: type[BaseException]) -> None:
    rows = [{"a": float(i)} for i in range(6)]
    rows[3][name] = 1.0
    learner = Failing()
    with pytest.raises(error) as raised:
        learner.learn_many(rows, [0, 1] * 3)
    assert raised.value.__notes__ == ["raised in Failing.learn() at step 4"]
    assert learner.steps == 4
    with pytest.raises(error):
        learner.predict_learn_many(rows[3:], [1, 0, 1])
    assert learner.steps == 5
    learner.learn_one({"a": 1.0}, 0)
    assert learner.predict_one({"a": 1.0}) in (0, 1)


def test_scores_that_are_no_numbers_are_rejected() -> None:
    class Odd(Perceptron):
        def scores(self, x: dict[Any, float]) -> dict[Any, float]:
            return {"x": float("nan")}

        def learn(self, x: dict[Any, float], y: Any, w: float) -> None:
            pass

    learner = Odd()
    learner.learn_one({"a": 1.0}, "x")
    with pytest.raises(DataError, match=r"Odd\.scores\(\) gave nan for the label 'x'"):
        learner.predict_one({"a": 1.0})


def test_a_rule_that_calls_itself_is_rejected() -> None:
    class Loop(Perceptron):
        def learn(self, x: dict[Any, float], y: Any, w: float) -> None:
            self.predict_one({"a": 1.0})

    with pytest.raises(BusyLearnerError):
        Loop().learn_one({"a": 1.0}, "x")


def test_what_a_rule_must_write_is_named() -> None:
    with pytest.raises(ParameterError, match=r"Empty is a PythonRule without start\(\) and learn\(\) and scores\(\)"):
        type("Empty", (PythonRule,), {})()
    half = {"start": lambda self: None, "scores": lambda self, x: {}}
    with pytest.raises(ParameterError, match=r"Half is a PythonRule without learn\(\); define"):
        type("Half", (PythonRule,), half)()


def test_inside_another_learner() -> None:
    learner, twin = OVFIV(base=Perceptron()), OVFIV(base=Perceptron())
    x, y = [x for x, _ in ROWS], [y for _, y in ROWS]
    predictions = []
    for row, label in zip(x, y, strict=True):
        predictions.append(learner.predict_one(row))
        learner.learn_one(row, label)
    assert twin.predict_learn_many(x, y) == predictions
    with pytest.raises(ModelFileError, match="pickle the learner instead"):
        learner.to_bytes()
    again = pickle.loads(pickle.dumps(learner))
    assert again.margins_one(x[0]) == learner.margins_one(x[0])
    assert again._engine.model.base.learner.weights == learner._engine.model.base.learner.weights


def test_an_interrupt_in_a_river_classifier_is_not_lost() -> None:
    class Interrupted(river_base.Classifier):
        def learn_one(self, x: Any, y: Any) -> None:
            if "stop" in x:
                raise KeyboardInterrupt

        def predict_proba_one(self, x: Any) -> dict[Any, float]:
            return {}

    learner = OVFIV(base=Interrupted())
    rows = [{"a": float(i)} for i in range(6)]
    rows[3]["stop"] = 1.0
    with pytest.raises(KeyboardInterrupt):
        learner.learn_many(rows, [0, 1] * 3)
    assert learner.steps == 4


MODULE = """
from varifold import PythonRule

class Majority(PythonRule):
    def start(self):
        self.counts = {}
    def learn(self, x, y, w):
        self.counts[y] = self.counts.get(y, 0.0) + w
    def scores(self, x):
        return dict(self.counts)
"""


def test_run_and_bench_take_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    rows = "".join(f"{i % 5},{i % 3},{'a' if i % 3 else 'b'}\n" for i in range(60))
    (tmp_path / "data.csv").write_text("f,g,y\n" + rows)
    run = ["run", "data.csv", "--target", "y", "--model", "mine:Majority"]
    bench = ["bench", "run", "--data", "data.csv", "--target", "y", "--models", "mine:Majority", "--repeats", "1"]
    for command in (run, bench):
        done = subprocess.run(
            [sys.executable, "-m", "varifold", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "mine:Majority" in done.stdout


class Meddling(Perceptron):
    """A rule whose explanations change the instance they are given."""

    def explain(self, x: dict[Any, float], label: Any) -> dict[Any, float]:
        parts = super().explain(dict(x), label)
        x.update({f"more {i}": 1.0 for i in range(10_000)})
        return parts


def test_an_explanation_may_change_its_instance() -> None:
    meddling, plain = Meddling(), Perceptron()
    for x, y in ROWS:
        meddling.learn_one(x, y)
        plain.learn_one(x, y)
    assert meddling.explain_one(ROWS[0][0]) == plain.explain_one(ROWS[0][0])


class Weightless(Perceptron):
    """A rule that cannot say what a feature weighs."""

    def weight(self, name: Any) -> float:
        raise LookupError(name)


def test_an_error_in_weight_is_raised_where_it_is_requested() -> None:
    model = Weightless()
    model.learn_one({"a": 1.0}, "x")
    with pytest.raises(LookupError):
        _ = model.features
    model.learn_one({"a": 2.0}, "y")
    assert model.steps == 2
