"""AutoDetector: its oracle, what labels change, alarms in an outage, degenerate streams."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import varifold
from tests.anomaly.streams import follow, instances, normal_rows, plain
from tests.oracles.autodetector import Auto
from varifold.evaluate import detection_scores


def test_follows_the_oracle() -> None:
    follow(varifold.AutoDetector(seed=2), Auto(2), 350)


def test_labels_weigh_the_experts_as_the_oracle_does() -> None:
    model, oracle = varifold.AutoDetector(), Auto()
    space, slots = model._engine.space, {}
    for t, x in enumerate(instances(300, seed=4)):
        given = plain(x)
        known = {name: v for name, v in given.items() if name in slots}
        score = oracle.score(known, slots) if known else 0.0
        assert model.score_one(x) == pytest.approx(score, rel=1e-9, abs=1e-9), t
        model.learn_one(x)
        slots.update({name: space.id_of(name) for name in given})
        oracle.learn(given, slots)
        if t > 50 and t % 3 == 0 and given:
            odd = {"a": 2.0, "b": -4.0 - t % 5}  # only together
            for labelled, anomaly in ((x, False), (odd, True)):
                model.label_one(labelled, anomaly)
                oracle.label(plain(labelled), slots, anomaly)
    assert list(model.weights.values()) == pytest.approx(oracle.weights().tolist(), rel=1e-9)
    assert model.weights["tail"] < 1.0 / 4.5
    before = model.weights
    model.label_one({"never seen": 1.0}, True)
    assert model.weights == before
    loaded = varifold.from_bytes(model.to_bytes())
    assert loaded.weights == before
    with pytest.raises(varifold.errors.TargetError, match="pass True"):
        model.label_one({"a": 1.0}, 1)  # type: ignore[arg-type]


def test_labels_find_the_expert_of_a_stream() -> None:
    """Anomalies that only break a correlation: with labels of a few, the others are found better."""

    def rows(seed: int) -> tuple[list[dict[str, float]], list[bool]]:
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(3000, 1)) + 0.3 * rng.normal(size=(3000, 8))
        odd = rng.random(3000) < 0.05
        z[odd, 0] *= -1.0
        return [{f"f{j}": float(v) for j, v in enumerate(row)} for row in z], odd.tolist()

    areas = []
    for share in (0.0, 0.1):
        model, rng = varifold.AutoDetector(), random.Random(1)
        data, odd = rows(3)
        scores = []
        for x, anomaly in zip(data, odd, strict=True):
            scores.append(model.score_one(x))
            model.learn_one(x)
            if rng.random() < share:
                model.label_one(x, anomaly)
        areas.append(detection_scores(scores, odd, [False] * len(odd)).auroc)
    assert areas[1] > areas[0] + 0.01


def test_one_expert_that_is_sure_is_enough() -> None:
    """Two of twelve sensors no longer belong together: a row that only the copula finds unusual."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(4000, 12))
    z[:, 1] = 2.0 * z[:, 0] + 0.1 * rng.normal(size=4000)
    odd = rng.random(4000) < 0.02
    z[odd, 1] = rng.permutation(z[:, 1])[odd]
    scores, _ = varifold.AutoDetector().run_block(varifold.to_block(z))
    assert detection_scores(scores[500:], odd[500:], np.zeros(3500)).auroc > 0.65  # .61 by the mean alone


def test_a_value_far_from_all_others_is_an_alarm() -> None:
    """Also next to values that are as usual as can be: twenty deviations are more than the largest of 250 values."""
    p_values = []
    for seed in range(5):
        rng, model = random.Random(seed), varifold.AutoDetector()
        for _ in range(1500):
            x = {"temp": rng.gauss(20, 2), "state": rng.choice(["on", "off"]), "flow": rng.gauss(5, 1)}
            model.learn_one({name: value for name, value in x.items() if name != "temp" or rng.random() > 0.05})
        p_values.append(model.p_value_one({"temp": 60.0, "flow": 5.0, "state": "on"}))
        assert model.score_one({"temp": 60.0, "flow": 5.0}) > model.score_one({"temp": 28.0, "flow": 5.0})
    assert np.mean(p_values) < 0.008


def missing_rows(count: int) -> tuple[list[dict[str, float]], list[bool]]:
    """Generate eight values of which hardly ever one is absent, and four of which half are."""
    rng = np.random.default_rng(4)
    rows, odd = [], []
    for t in range(count):
        absent = {int(rng.integers(8))} if t > 300 and rng.random() < 0.01 else set()
        odd.append(bool(absent))
        present = [j for j in range(12) if j not in absent and (j < 8 or rng.random() < 0.5)]
        rows.append({f"f{j}": float(rng.normal()) for j in present})
    return rows, odd


def test_an_absence_that_is_unusual_is_found_and_explained() -> None:
    rows, odd = missing_rows(3000)
    model = varifold.AutoDetector()
    scores, p = model.run_block(varifold.to_block(rows))
    assert detection_scores(scores[300:], odd[300:], np.zeros(2700)).auroc > 0.75
    assert (p[300:][~np.array(odd[300:])] <= 0.01).mean() < 0.012
    usual, unusual = {f"f{j}": 0.0 for j in range(12) if j != 10}, {f"f{j}": 0.0 for j in range(12) if j != 2}
    model.learn_one({f"f{j}": 0.0 for j in range(12)})
    assert not any("absent" in str(name) for name in model.explain_one(usual))
    assert next(iter(model.explain_one(unusual))) == "f2 (absent)"
    assert sum(model.explain_one(unusual).values()) == pytest.approx(model.score_one(unusual))
    loaded = varifold.from_bytes(model.to_bytes())
    assert loaded.score_one(unusual) == model.score_one(unusual)


def test_only_the_beginning_of_an_outage_is_unusual() -> None:
    model = varifold.AutoDetector()
    for x in missing_rows(2000)[0]:
        model.learn_one(x)
    out = {f"f{j}": 0.0 for j in range(4, 12)}
    assert "f0 (absent)" in model.explain_one(out)
    model.learn_one(out)
    assert not any("absent" in str(name) for name in model.explain_one(out))


def word_rows(count: int) -> tuple[list[dict[str, float]], list[bool]]:
    """Generate texts of 3,000 words by Zipf's law; in 3 % of them half of the words are drawn evenly."""
    rng = np.random.default_rng(1)
    share = 1.0 / np.arange(1, 3001)
    share /= share.sum()
    rows, odd = [], []
    for t in range(count):
        words = rng.choice(3000, int(rng.integers(15, 60)), p=share)
        odd.append(t > 300 and bool(rng.random() < 0.03))
        if odd[-1]:
            words[: len(words) // 2] = rng.integers(0, 3000, len(words) // 2)
        rows.append({f"w{k}": 1.0 for k in set(words.tolist())})
    return rows, odd


def test_rare_words_follow_the_oracle() -> None:
    """Ten words in all texts and three of a hundred; values, so that no scores are equal but for rounding."""
    rng = np.random.default_rng(3)
    rows = [{f"w{k}": float(rng.normal()) for k in [*range(10), *rng.choice(100, 3) + 10]} for _ in range(150)]
    model, oracle, slots = varifold.AutoDetector(), Auto(), {}
    space = model._engine.space
    for t, x in enumerate(rows):
        known = {name: v for name, v in x.items() if name in slots}
        assert model.score_one(x) == pytest.approx(oracle.score(known, slots) if known else 0.0, rel=1e-9, abs=1e-9), t
        model.learn_one(x)
        slots.update({name: space.id_of(name) for name in x})
        oracle.learn(x, slots)
    assert oracle.absence.variance > 1.0


def test_texts_of_rare_words_are_found_and_explained() -> None:
    rows, odd = word_rows(2500)
    model = varifold.AutoDetector()
    scores, _ = model.run_block(varifold.to_block(rows))
    assert detection_scores(scores[300:], odd[300:], np.zeros(2200)).auroc > 0.95
    rare = {f"w{k}": 1.0 for k in (1, 2, 700, 900, 1100)}
    parts = model.explain_one(rare)
    assert parts["w900 (present)"] > parts["w1 (present)"]
    assert sum(parts.values()) == pytest.approx(model.score_one(rare))
    assert varifold.from_bytes(model.to_bytes()).score_one(rare) == model.score_one(rare)


def test_columns_that_are_all_rare_are_no_words() -> None:
    """Five of 200 sensors in each row: no column is rarer than another, so nothing is added."""
    rng = np.random.default_rng(2)
    model = varifold.AutoDetector()
    for _ in range(600):
        group = 5 * int(rng.integers(40))
        model.learn_one({f"s{group + j}": float(rng.normal()) for j in range(5)})
    assert not any("present" in str(name) for name in model.explain_one({f"s{j}": 0.0 for j in range(5)}))


def test_an_outage_is_no_series_of_alarms() -> None:
    model = varifold.AutoDetector()
    _, p = model.run_block(varifold.to_block(normal_rows(7_000, 5)))
    assert (p[4000:4100] <= 0.01).sum() <= 5


DEGENERATE = {
    "constant column": [{"a": math.sin(i), "c": 3.0} for i in range(200)],
    "all constant": [{"a": 1.0, "b": 2.0}] * 200,
    "duplicates": [{"a": float(i % 2), "b": float(i % 3)} for i in range(200)],
    "strings": [{"s": "abc"[i % 3], "t": "uvwxyz"[i * i % 6]} for i in range(200)],
    "one feature": [{"a": math.sin(i)} for i in range(200)],
    "one row": [{"a": 1.0, "b": 2.0}],
    "all absent": [{"a": None, "b": math.nan}] * 200,
}


@pytest.mark.parametrize("rows", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_scores_are_finite_and_explained_on_degenerate_streams(rows: list[dict[str, Any]]) -> None:
    model = varifold.AutoDetector()
    for step, x in enumerate(rows):
        for probe in ({}, {"a": 1e9, "z": 1.0}, {"s": "new"}, x) if step % 40 == 0 or step + 2 > len(rows) else ():
            score = model.score_one(probe)
            assert math.isfinite(score)
            assert 0.0 < model.p_value_one(probe) <= 1.0
            assert sum(model.explain_one(probe).values()) == pytest.approx(score, abs=1e-9)
        model.learn_one(x)
