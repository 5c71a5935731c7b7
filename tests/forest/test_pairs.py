"""Pairs of features in ORF3V: against the oracle, where they are needed, and how they come and go."""

import numpy as np
import pytest

from tests.oracles.orf3v import ORF3VOracle
from varifold import ORF3V, datasets, load, to_block
from varifold.errors import ParameterError


def exclusive(n, seed=0, noise=4, removed=0.0, labels=2):
    """The label is the exclusive or of two signs (with a third label, their sum); other features say nothing."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        z = rng.normal(size=2 + noise)
        y = int(z[0] > 0) ^ int(z[1] > 0) if labels == 2 else int(z[0] > 0) + int(z[1] > 0)
        x = {f"f{j}": float(v) for j, v in enumerate(z) if rng.random() >= removed}
        rows.append((x, y))
    return rows


def changing(n):
    """Two features decide together; one of them vanishes, another takes over; a flag, a text, a late third label."""
    rng = np.random.default_rng(5)
    for t in range(n):
        a, b, c = rng.normal(size=3)
        partner = "b" if t < 400 else "c"
        x = {"a": float(a), partner: float(b), "flag": float(rng.random() < 0.9), "same": 1.0}
        x |= {"noise": float(c)} if rng.random() < 0.7 else {}
        x |= {"text": "uv"[int(rng.integers(2))]} if rng.random() < 0.5 else {}
        y = int(a > 0) ^ int(b > 0) if t < 300 or rng.random() < 0.9 else 2
        yield x, y, float(rng.choice([0.5, 1.0, 2.0]))


@pytest.mark.parametrize(("alpha", "temper"), [(0.002, True), (0.02, False)])
def test_follows_the_oracle(alpha, temper):
    settings = {"pairs": 3, "alpha": alpha, "temper": temper, "window": 60, "delta": 0.01, "seed": 2}
    model, oracle = ORF3V(**settings), ORF3VOracle(**settings)
    seen: set = set()
    for t, (x, y, w) in enumerate(changing(1000)):
        if t and t % 3 == 0:
            assert list(model.margins_one(x).values()) == pytest.approx(oracle.scores(x), rel=1e-9, abs=1e-9), t
        model.learn_one(x, y, w)
        oracle.learn(x, y, w)
        if t % 20 == 0:
            slots = {slot: name for name, slot in oracle.slots.items()}
            votes = {tuple(slots[s] for s in p.slots): p.mean() / np.log(2) for p in oracle.grids.voting if p}
            assert model.interactions() == pytest.approx(votes)
            seen.add(frozenset(frozenset(names) for names in votes))
    assert any(frozenset("ab") in names for names in seen), "found"
    assert any(frozenset("ac") in names for names in seen), "its partner vanished, another was found"
    assert len(seen) > 3, "pairs came and went"


def second_half(model, rows):
    block = to_block([x for x, _ in rows], [y for _, y in rows])
    predicted = model.predict_learn_many(block)
    half = len(rows) // 2
    return float(np.mean([a == y for a, (_, y) in zip(predicted[half:], rows[half:], strict=True)]))


@pytest.mark.parametrize("seed", range(3))
def test_exclusive_or_is_out_of_reach_of_single_features_and_learned_by_pairs(seed):
    rows = exclusive(3000, seed)
    assert second_half(ORF3V(), rows) < 0.55
    model = ORF3V(pairs=8)
    assert second_half(model, rows) > 0.93
    assert next(iter(model.interactions())) == ("f0", "f1")
    assert set(list(model.importances())[:2]) == {"f0", "f1"}
    assert model.importances()["f0"] > 0.2


def test_exclusive_or_with_features_missing():
    """Nothing can be known unless both are there: right in (1 + .75 ** 2) / 2 = .78 of all."""
    rows = exclusive(4000, removed=0.25)
    assert second_half(ORF3V(), rows) < 0.55
    assert second_half(ORF3V(pairs=8), rows) > 0.74


def test_no_pair_is_found_where_features_merely_add_up():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 5))
    y = X[:, 0] + X[:, 1] + rng.normal(size=4000) > 0
    model = ORF3V(pairs=5)
    model.learn_many(to_block(X, y.tolist()))
    assert max(model.interactions().values(), default=0.0) < 0.03


@pytest.mark.real_data
def test_a_real_set_of_many_labels_gains():
    block = datasets.load("frogs").block
    kept = np.random.default_rng(0).permutation(len(block))[:2500]
    errors = {}
    for pairs in (0, 10):
        model = ORF3V(pairs=pairs)
        codes, _ = model.run_block(block.take(kept))
        predictions = np.array([*model.classes, None], dtype=object)[codes]
        errors[pairs] = np.mean(predictions != np.array(block.labels.values, dtype=object)[block.codes[kept]])
    assert errors[10] < 0.85 * errors[0]


def state(model):
    names, labels, arrays = model._engine.dump()
    return names, labels, {key: array.tobytes() for key, array in arrays.items()}


@pytest.mark.parametrize("cut", [0, 45, 160, 600])
def test_both_apis_and_a_file_lead_to_the_same_memory(cut, tmp_path):
    rows = list(changing(1000))
    one, many = (ORF3V(pairs=3, window=60, delta=0.01) for _ in range(2))
    predictions = []
    for t, (x, y, w) in enumerate(rows):
        if t == cut:
            one.save(tmp_path / "model")
            one = load(tmp_path / "model")
        predictions.append(one.predict_one(x))
        one.learn_one(x, y, w)
    block = to_block([x for x, _, _ in rows], [y for _, y, _ in rows], [w for _, _, w in rows])
    assert many.predict_learn_many(block) == predictions
    assert state(one) == state(many)


@pytest.mark.parametrize("labels", [2, 3])
def test_votes_sum_to_the_score_and_predict_changes_nothing(labels):
    model = ORF3V(pairs=4)
    rows = exclusive(1200, labels=labels)
    for x, y in rows:
        model.learn_one(x, y)
    before = state(model)
    for x, _ in rows[:40]:
        for label, margin in model.margins_one(x).items():
            assert sum(model.explain_one(x, label).values()) == pytest.approx(margin)
    parts = model.explain_one({"f0": 1.0, "f1": -1.0}, 1)
    assert parts["f0"] == pytest.approx(parts["f1"], abs=0.3)
    assert labels == 3 or 0.3 < parts["f0"] < 0.4, "half of log 2 at the most"
    assert state(model) == before


def test_an_evicted_feature_takes_its_pairs_along():
    model = ORF3V(pairs=4, max_features=2)
    for x, y in exclusive(1500, noise=0):
        model.learn_one(x, y)
    assert list(model.interactions()) == [("f0", "f1")]
    model.learn_one({"other": 1.0}, 0)
    assert len(model.features) == 2
    assert model.interactions() == {}


def test_pairs_need_the_vote_they_are_made_for():
    with pytest.raises(ParameterError, match="pairs"):
        ORF3V(pairs=2, vote="paper")
    with pytest.raises(ParameterError, match="pairs"):
        ORF3V(pairs=-1)
