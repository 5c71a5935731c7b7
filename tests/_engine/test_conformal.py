"""Intervals and sets: equations, both APIs, files, copies, what is rejected; nothing changes without them."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import varifold
from tests.oracles.conformal import Conformal
from varifold import AROW, AROWRegressor, AutoRegressor, GaussianNB, MeanRegressor, merge
from varifold.errors import ModelFileError, ParameterError

Pairs = list[tuple[dict[str, Any], float]]


def numbers(n: int, seed: int = 0, quiet: int = 10**9) -> Pairs:
    """Targets of five features, each present with .7; from `quiet` on the heaviest is silent; names and strings too."""
    rng = np.random.default_rng(seed)
    pairs: Pairs = []
    for step in range(n):
        v = rng.normal(size=5)
        x: dict[str, Any] = {f"f{j}": float(v[j]) for j in range(5) if rng.random() < 0.7}
        if step >= quiet:
            x.pop("f0", None)
        if step % 50 == 7:
            x[f"new{step}"] = 1.0
        x["unit"] = "ab"[step % 2]
        pairs.append((x, float(v @ np.array([6.0, 2.0, 1.0, 1.0, 0.0]) + rng.normal())))
    return pairs


def labelled(pairs: Pairs) -> list[tuple[dict[str, Any], Any]]:
    return [(x, "high" if y > 2 else "low" if y < -2 else 0) for x, y in pairs]


def names(x: dict[str, Any]) -> set[str]:
    return {f"{name}={value}" if isinstance(value, str) else name for name, value in x.items()}


# ---------------------------------------------------------------- the equations


def idle(pairs: Pairs, rows: int) -> Pairs:
    """The target is 0 in the first rows."""
    return [(x, 0.0 if step < rows else y) for step, (x, y) in enumerate(pairs)]


def rising(pairs: Pairs) -> Pairs:
    """A trend that makes every prediction of a mean too low."""
    return [(x, y / 6 + step) for step, (x, y) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("make", "pairs"),
    [
        (AROWRegressor, numbers(1300)),
        (MeanRegressor, numbers(1300)),
        (AROWRegressor, idle(numbers(500), 200)),
        (MeanRegressor, rising(numbers(800))),
    ],
)
def test_intervals_follow_the_oracle(make: Any, pairs: Pairs) -> None:
    model, oracle = make(coverages=(0.9, 0.5)), Conformal((0.5, 0.9), numbers=True)
    known, targets = set(), []
    for x, y in pairs:
        prediction = model.predict_one(x)
        deviation = float(np.std(targets)) if targets else 0.0
        level = float(np.clip((prediction - np.mean(targets)) / deviation, -3, 3)) if deviation > 0 else 0.0
        wanted = oracle.interval(names(x) & known, prediction, level)
        found = [model.predict_interval_one(x, coverage) for coverage in (0.5, 0.9)]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
        if targets:
            oracle.observe(names(x), y, prediction)
        model.learn_one(x, y)
        known |= names(x)
        targets.append(y)


@pytest.mark.parametrize("rows", [0, 300])
def test_sets_follow_the_oracle(rows: int) -> None:
    model, oracle = GaussianNB(coverages=(0.6, 0.9)), Conformal((0.6, 0.9), numbers=False)
    known: set[str] = set()
    for x, y in labelled(idle(numbers(1300), rows)):
        share = model.predict_proba_one(x)
        highest = oracle.highest(names(x) & known) if share else [-math.inf, -math.inf]
        for coverage, high in zip((0.6, 0.9), highest, strict=True):
            found = model.predict_set_one(x, coverage)
            sure = {label for label, p in share.items() if 1 - p <= high - 1e-9}
            assert sure <= found <= {label for label, p in share.items() if 1 - p <= high + 1e-9}
        if share:
            oracle.observe(names(x), 1 - share.get(y, 0.0))
        model.learn_one(x, y)
        known |= names(x)


# ---------------------------------------------------------------- what is promised


@pytest.mark.parametrize("quiet", [1200, 1800])
def test_coverage_holds_inside_an_outage_and_the_band_widens(quiet: int) -> None:
    pairs = numbers(3000, seed=4, quiet=quiet)
    y = np.array([target for _, target in pairs])
    block = varifold.to_block([x for x, _ in pairs], y.tolist(), numeric=True)
    _, bounds = AutoRegressor().run_intervals(block)
    low, high = bounds[:, 0].T
    covered = (low <= y) & (y <= high)
    assert 0.88 <= covered.mean() <= 0.92
    assert 0.85 <= covered[quiet : quiet + 500].mean() <= 0.95
    assert (high - low)[quiet + 100 :].mean() > 1.3 * (high - low)[200:quiet].mean()


def test_the_second_outage_begins_as_wide_as_the_first_became() -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for step in range(2600):
        v = rng.normal(size=6)
        silent = 1000 <= step < 1300 or step >= 2300
        pairs.append(
            ({f"s{j}": float(v[j]) for j in range(3 if silent else 6)}, float(v @ [1, 1, 1, 3, 2, 1] + rng.normal()))
        )
    block = varifold.to_block([x for x, _ in pairs], [y for _, y in pairs], numeric=True)
    _, bounds = AROWRegressor(coverages=(0.9,)).run_intervals(block)
    width = np.diff(bounds[:, 0])[:, 0]
    assert width[1000:1010].mean() < 0.5 * width[1200:1300].mean()
    assert width[2300:2310].mean() > 0.8 * width[1200:1300].mean()


def repeated_outages(noise: float, seed: int) -> Pairs:
    """The sensor that makes nearly all of the target falls silent three times."""
    rng = np.random.default_rng(seed)
    pairs: Pairs = []
    for step in range(3500):
        v = rng.normal(size=5)
        silent = 1000 <= step < 1300 or 2000 <= step < 2300 or step >= 3000
        x = {f"s{j}": float(v[j]) for j in range(1 if silent else 0, 5)}
        pairs.append((x, float(10.0 * v[0] + v[1] + noise * rng.normal())))
    return pairs


@pytest.mark.parametrize("make", [AutoRegressor, AROWRegressor])
@pytest.mark.parametrize("noise", [1.0, 0.3])
def test_outages_are_remembered_when_errors_grow_tenfold(make: Any, noise: float) -> None:
    for seed in (0, 1):
        held = covered(make(coverages=(0.9,)), repeated_outages(noise, seed))
        assert 0.88 <= held.mean() <= 0.92
        for start, stop in ((1000, 1300), (1300, 1800), (2000, 2300), (2300, 2800), (3000, 3500)):
            assert 0.85 <= held[start:stop].mean() <= 0.95


def test_noise_that_falls_is_followed_without_overshooting() -> None:
    rng = np.random.default_rng(1)
    pairs: Pairs = []
    for step in range(3000):
        v = rng.normal(size=3)
        pairs.append(
            ({"a": float(v[0]), "b": float(v[1])}, float(3 * v[0] - 2 * v[1] + v[2] * (5 if step < 1500 else 0.5)))
        )
    held = covered(AutoRegressor(), pairs)
    assert all(0.85 <= held[at : at + 500].mean() <= 0.95 for at in range(0, 2501, 100))


def test_the_width_knows_which_sensor_is_silent() -> None:
    model = AutoRegressor()
    for x, y in numbers(2500, seed=2):
        model.learn_one(x, y)
    whole = {f"f{j}": 0.1 for j in range(5)} | {"unit": "a"}
    width = {
        silent: np.diff(model.predict_interval_one({k: v for k, v in whole.items() if k != silent}))[0]
        for silent in ("f0", "f4", "none")
    }
    assert width["f0"] > 1.5 * width["none"]
    assert width["f4"] < 1.2 * width["none"]


@pytest.mark.parametrize("factor", [100.0, 0.01])
def test_a_jump_of_the_scale_is_followed(factor: float) -> None:
    rng = np.random.default_rng(3)
    scale = np.where(np.arange(3000) < 1500, 1.0, factor)
    x = rng.normal(size=3000)
    y = (2.0 * x + rng.normal(size=3000)) * scale
    block = varifold.to_block([{"x": float(v)} for v in x], y.tolist(), numeric=True)
    _, bounds = AROWRegressor(coverages=(0.9,)).run_intervals(block)
    covered = (bounds[:, 0, 0] <= y) & (y <= bounds[:, 0, 1])
    assert 0.85 <= covered[1500:2000].mean() <= 0.95


def covered(model: Any, pairs: Pairs) -> np.ndarray:
    """Row by row: does the interval hold the target?"""
    y = np.array([target for _, target in pairs])
    block = varifold.to_block([x for x, _ in pairs], y.tolist(), numeric=True)
    low, high = model.run_intervals(block)[1][:, 0].T
    return (low <= y) & (y <= high)


@pytest.mark.parametrize("rows", [500, 2000])
def test_a_constant_target_does_not_wind_the_levels_up(rows: int) -> None:
    held = covered(AutoRegressor(), idle(numbers(rows + 1000, seed=5), rows))
    assert held[:rows].all()
    assert 0.85 <= held[rows : rows + 250].mean() <= 0.95
    assert 0.88 <= held[rows:].mean() <= 0.92


def test_a_single_label_does_not_wind_the_level_up() -> None:
    pairs = labelled(idle(numbers(3000, seed=5), 2000))
    model = AROW(coverages=(0.9,))
    _, _, held = model.run_sets(varifold.to_block([x for x, _ in pairs], [y for _, y in pairs]))
    place = {label: i for i, label in enumerate(model.classes)}
    right = held[np.arange(3000), 0, [place[y] for _, y in pairs]]
    assert right[1:2000].all()
    assert 0.85 <= right[2000:2500].mean() <= 0.95


def test_certain_predictions_do_not_raise_the_level() -> None:
    """Probabilities of exactly 1: every set holds their label, and no level makes it smaller."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=2000).tolist()
    model = GaussianNB(coverages=(0.9,), calibrate=False)  # calibrated probabilities are never exactly 1
    _, _, held = model.run_sets(varifold.to_block([{"a": 1e3 * y + rng.normal()} for y in labels], labels))
    assert held[100:, 0].sum(axis=1).tolist() == [1] * 1900
    assert model._engine.dump()[2]["conformal.miss"][0, 0] < 0.2


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_misses_of_a_biased_predictor_follow_the_requested_share(sign: float) -> None:
    rng = np.random.default_rng(1)
    pairs: Pairs = []
    for step in range(5000):
        v = rng.normal(size=4)
        target = 0.5 * step + v @ [3.0, -2.0, 1.0, 0.5]
        pairs.append(({f"s{j}": float(v[j]) for j in range(3)}, float(sign * target)))
    held = covered(AutoRegressor(), pairs)
    assert 0.88 <= held.mean() <= 0.92
    assert all(0.85 <= held[at : at + 500].mean() <= 0.95 for at in range(500, 5000, 500))


def test_sets_hold_their_coverage() -> None:
    pairs = labelled(numbers(3000, seed=6, quiet=1500))
    block = varifold.to_block([x for x, _ in pairs], [y for _, y in pairs])
    model = AROW(coverages=(0.9,))
    _, _, held = model.run_sets(block)
    place = {label: i for i, label in enumerate(model.classes)}
    covered = held[np.arange(3000), 0, [place[y] for _, y in pairs]]
    assert 0.88 <= covered.mean() <= 0.92
    assert 0.85 <= covered[1500:2000].mean() <= 0.95
    assert 1.0 < held[:, 0].sum(axis=1).mean() < 2.5


def test_before_anything_was_measured() -> None:
    model = AROWRegressor(coverages=(0.9,))
    assert model.predict_interval_one({"a": 1.0}) == (-math.inf, math.inf)
    model.learn_one({"a": 1.0}, 3.0)
    assert model.predict_interval_one({"a": 1.0}) == (-math.inf, math.inf)
    model.learn_one({"a": 2.0}, 4.0)
    assert all(map(math.isfinite, model.predict_interval_one({"a": 1.0})))
    classifier = GaussianNB(coverages=(0.9,))
    assert classifier.predict_set_one({"a": 1.0}) == set()
    classifier.learn_one({"a": 1.0}, "only")
    assert classifier.predict_set_one({"a": 1.0}) == {"only"}


def test_exact_predictions_have_intervals_without_width() -> None:
    model = MeanRegressor(coverages=(0.9,))
    for _ in range(50):
        model.learn_one({"a": 1.0}, 7.0)
    assert model.predict_interval_one({"a": 1.0}) == (7.0, 7.0)
    model.learn_one({"a": 1.0}, 1007.0)
    assert all(map(math.isfinite, model.predict_interval_one({"a": 1.0})))


def test_labels_keep_their_types() -> None:
    model = AROW(coverages=(0.99,))
    for step in range(60):
        model.learn_one({"a": float(step % 3)}, (0, True, "x")[step * 7 % 3] if step % 2 else 0)
    held = {label for a in range(3) for label in model.predict_set_one({"a": float(a)}, 0.99)}
    assert {type(label) for label in held} <= {int, bool, str}
    assert held <= set(model.classes)


# ---------------------------------------------------------------- both APIs, files, copies


@pytest.mark.parametrize("bound", [None, 12])
def test_the_apis_of_regressors_are_equal(bound: int | None) -> None:
    pairs = numbers(500)
    one, many, learned = (AROWRegressor(coverages=(0.5, 0.9), max_features=bound) for _ in range(3))
    wanted = []
    for x, y in pairs:
        wanted.append([one.predict_interval_one(x, coverage) for coverage in (0.5, 0.9)])
        one.learn_one(x, y)
    block = varifold.to_block([x for x, _ in pairs], [y for _, y in pairs], numeric=True)
    _, bounds = many.run_intervals(block)
    learned.learn_many(block)
    assert np.array_equal(np.array(wanted), bounds)
    assert one.to_bytes() == many.to_bytes() == learned.to_bytes()
    intervals = [one.predict_interval_one(x) for x, _ in pairs]
    assert one.predict_interval_many([x for x, _ in pairs]) == intervals
    assert one.to_bytes() == many.to_bytes()


@pytest.mark.parametrize("make", [AROW, GaussianNB, varifold.OVFIV])
@pytest.mark.parametrize("bound", [None, 12])
def test_the_apis_of_classifiers_are_equal(make: Any, bound: int | None) -> None:
    pairs = labelled(numbers(400))
    one, many, learned = (make(coverages=(0.5, 0.9), max_features=bound) for _ in range(3))
    wanted = []
    for x, y in pairs:
        wanted.append([one.predict_set_one(x, coverage) for coverage in (0.5, 0.9)])
        one.learn_one(x, y)
    block = varifold.to_block([x for x, _ in pairs], [y for _, y in pairs])
    _, _, held = many.run_sets(block)
    learned.predict_learn_many(block)
    known = many.classes
    assert wanted == [[{known[j] for j in np.flatnonzero(row)} for row in rows] for rows in held]
    assert one.to_bytes() == many.to_bytes() == learned.to_bytes()
    assert one.predict_set_many(block) == [one.predict_set_one(x) for x, _ in pairs]


def test_frames_keep_their_kind() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.5, None, 1.5]}, index=[7, 8, 9])
    number = AROWRegressor(coverages=(0.9,))
    number.learn_many(frame, [1.0, 2.0, 4.0])
    intervals = number.predict_interval_many(frame)
    assert list(intervals.columns) == ["low", "high"]
    assert list(intervals.index) == [7, 8, 9]
    label = AROW(coverages=(0.9,))
    label.learn_many(frame, ["x", "y", "x"])
    sets = label.predict_set_many(frame)
    assert list(sets.columns) == ["x", "y"]
    assert sets.to_numpy().dtype == bool


@pytest.mark.parametrize("make", [AROWRegressor, AROW])
def test_files_pickles_and_copies_go_on_as_if_nothing_had_happened(make: Any, tmp_path: Any) -> None:
    pairs = numbers(900) if make is AROWRegressor else labelled(numbers(900))
    model = make(coverages=(0.8, 0.9))
    for x, y in pairs[:600]:
        model.learn_one(x, y)
    model.save(tmp_path / "model")
    others = [varifold.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    assert all(other.coverages == (0.8, 0.9) for other in others)
    for x, y in pairs[600:]:
        for each in (model, *others):
            each.learn_one(x, y)
    assert all(other.to_bytes() == model.to_bytes() for other in others)


def test_unsound_files_are_rejected() -> None:
    model = AROWRegressor(coverages=(0.9,))
    for x, y in numbers(50):
        model.learn_one(x, y)
    names_, labels_, arrays = model._engine.dump()
    for key, at, value in (
        ("conformal.place", 0, 1001),
        ("conformal.place", 1, 3),
        ("conformal.miss", 0, 1.5),
        ("conformal.scores", 3, np.nan),
        ("conformal.evidence.variance", 2, -1.0),
        ("conformal.evidence.numbers", 0, -1.0),
        ("conformal.evidence.numbers", 1, 51.0),
        ("conformal.evidence.experts", 1, 5.0),
        ("conformal.evidence.count", 1, 1e6),
    ):
        broken = {name: array.copy() for name, array in arrays.items()}
        broken[key][at] = value
        other = AROWRegressor(coverages=(0.9,))
        with pytest.raises(ValueError, match=key.rpartition(".")[2] + "|scores is at|numbers of|log weights"):
            other._engine.fill(names_, labels_, broken)
    with pytest.raises(ModelFileError):
        AROW.from_bytes(model.to_bytes())


# ---------------------------------------------------------------- off, and what is rejected


@pytest.mark.parametrize("make", [AROWRegressor, AROW, AutoRegressor, varifold.AutoClassifier])
def test_predictions_are_the_same_with_and_without(make: Any) -> None:
    pairs = numbers(200) if varifold.base.learner.is_regressor(make) else labelled(numbers(200))
    plain, measured = make(coverages=()), make(coverages=(0.9,))
    for x, y in pairs:
        assert plain.predict_one(x) == measured.predict_one(x)
        plain.learn_one(x, y)
        measured.learn_one(x, y)
    state, other = plain._engine.dump()[2], measured._engine.dump()[2]
    assert set(other) - set(state) == {key for key in other if key.startswith("conformal.")}
    assert all(np.array_equal(state[key], other[key]) for key in state)
    assert "conformal" not in plain.state_bytes()
    assert "conformal" in measured.state_bytes()


def test_weights_of_zero_measure_nothing() -> None:
    model = AROWRegressor(coverages=(0.9,))
    for x, y in numbers(60):
        model.learn_one(x, y)
    before = model.to_bytes()
    model.learn_one({"f0": 1.0}, 1e6, w=0.0)
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    "bad", [0, 1, 0.9, None, "0.9", (0,), (1,), (0.0,), (1.0,), (-0.1,), (math.nan,), ("0.9",), (True,), (0.9, 0.9)]
)
def test_bad_coverages_are_rejected_when_made(bad: Any) -> None:
    with pytest.raises(ParameterError, match="'coverages' parameter of AROWRegressor must be a tuple of different"):
        AROWRegressor(coverages=bad)


def test_a_coverage_that_is_not_measured_is_rejected() -> None:
    with pytest.raises(ParameterError, match=r"has no coverage 0.8, only 0.9.*make it with coverages=\(0.9, 0.8"):
        AutoRegressor().predict_interval_one({"a": 1.0}, 0.8)
    with pytest.raises(ParameterError, match=r"made with coverages=\(\)"):
        AROW().predict_set_many([{"a": 1.0}], 0.8)


@pytest.mark.parametrize("bad", [0.0, 1.0, 90, True, math.nan, "0.9", None])
def test_what_is_no_coverage_is_rejected(bad: Any) -> None:
    for ask in (AutoRegressor().predict_interval_one, AROW().predict_set_one):
        with pytest.raises(ParameterError, match="above 0 and below 1"):
            ask({"a": 1.0}, bad)


def test_learners_with_coverages_are_not_merged() -> None:
    parts = [AROW(coverages=(0.9,)) for _ in range(2)]
    for part, (x, y) in zip(parts, labelled(numbers(2)), strict=True):
        part.learn_one(x, y)
    with pytest.raises(ParameterError, match="cannot be merged"):
        merge(parts)


def test_clones_keep_the_coverages() -> None:
    assert AutoRegressor().clone().coverages == (0.9,)
    assert AROW().clone().coverages == ()
    assert AROW().clone({"coverages": (0.95, 0.5)}).coverages == (0.5, 0.95)
    assert AutoRegressor().clone({"coverages": ()}).coverages == ()
