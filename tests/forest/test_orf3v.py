"""ORF3V against its oracle, step by step; pruning, late labels, files, and its report."""

import numpy as np
import pytest

from tests.oracles.orf3v import ORF3VOracle
from varifold import ORF3V, load, to_block
from varifold.errors import ParameterError, UnknownNameError


def stream(n, seed=0, labels=("a", "b"), weights=False, late=None):
    """Numbers of several kinds, a string column and a mixed one; features that come late, rarely, or vanish."""
    rng = np.random.default_rng(seed)
    out = []
    for t in range(n):
        k = int(rng.choice(len(labels) if late is None or t > late else 2))
        x = {
            "normal": float(rng.normal(k)),
            "wild": float(np.exp(3 * rng.normal() + 2 * k)),
            "count": float(rng.poisson(2 + k)),
            "flag": bool(rng.random() < 0.3 + 0.4 * (k == 1)),
            "constant": 7.0,
            "city": ["rome", "oslo", "bern"][int(rng.choice(3, p=[0.6, 0.3, 0.1] if k else [0.2, 0.3, 0.5]))],
            "mixed": float(rng.normal(-k)) if rng.random() < 0.5 else ["low", "high"][int(rng.random() < 0.5)],
        }
        x = {name: v for name, v in x.items() if rng.random() < 0.8}
        if t > n // 4 and rng.random() < 0.5:
            x["late"] = float(rng.normal(k))
        if t < n // 3 or t > 3 * n // 4:
            x["vanishing"] = float(rng.normal(2 * k))
            x["vanishing text"] = "pq"[int(rng.random() < 0.2 + 0.6 * k)]
        if rng.random() < 0.03:
            x[f"rare {int(rng.integers(4))}"] = float(rng.normal(k))
        if rng.random() < 0.02:
            x = {}
        out.append((x, labels[k], float(rng.choice([0.5, 1.0, 2.5])) if weights else 1.0))
    return out


SETTINGS = {
    "default": {},
    "paper": {"vote": "paper", "thresholds": "quantile", "K": 3},
    "random": {"replace": "random", "temper": False, "alpha": 0.3, "seed": 11},
    "small": {"J": 3, "K": 2, "grace": 1, "r": 7, "growth": 0.0, "smoothing": 0.1, "compression": 12.0},
    "prune": {"window": 40, "delta": 0.01},
    "hoeffding": {"window": 70, "delta": 0.05, "prune": "hoeffding", "thresholds": "quantile", "K": 3},
    "gap": {"window": 30, "delta": 0.1, "prune": "gap"},
    "pairs": {"pairs": 3},
    "fixed pairs": {"pairs": 2, "temper": False, "window": 40, "delta": 0.01, "alpha": 0.05},
    "kept": {"window": 30, "delta": 0.1, "prune": "none"},
    "as in the paper": {
        "vote": "paper",
        "prune": "hoeffding",
        "temper": False,
        "smoothing": 0.0,
        "update": "rounds",
        "r": 9,
    },
    "worst": {"replace": "worst", "r": 5, "J": 4, "K": 2},
    "rounds": {"update": "rounds", "replace": "worst", "smoothing": 0.0, "r": 11, "window": 40, "delta": 0.01},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("weights", "labels"), [(False, ("a", "b")), (True, ("a", "b", "c"))])
def test_follows_the_oracle(name, weights, labels):
    settings = SETTINGS[name]
    model, oracle = ORF3V(**settings, calibrate=False), ORF3VOracle(**settings)
    for t, (x, y, w) in enumerate(stream(220, labels=labels, weights=weights, late=120)):
        if t:
            assert list(model.margins_one(x).values()) == pytest.approx(oracle.scores(x), rel=1e-9, abs=1e-9), t
            assert list(model.predict_proba_one(x).values()) == pytest.approx(oracle.proba(x), rel=1e-9, abs=1e-9)
        model.learn_one(x, y, w)
        oracle.learn(x, y, w)
    assert model._engine.model.pruned == oracle.pruned
    assert oracle.pruned > 0 or name not in ("prune", "hoeffding", "gap")
    voting = {n: f for n, f in oracle.features.items() if f.stumps is not None or f.texts >= oracle.grace}
    assert model.weights() == pytest.approx({n: f.weight for n, f in voting.items()})
    assert model.importances() == pytest.approx({n: oracle.information(f) for n, f in voting.items()})
    assert list(model.importances().values()) == sorted(model.importances().values(), reverse=True)


def test_follows_the_oracle_when_forests_are_old():
    """The longest interval holds, and digests have been compressed."""
    rng = np.random.default_rng(3)
    settings = {"compression": 20.0, "thresholds": "quantile", "r": 60, "growth": 0.2}
    model, oracle = ORF3V(**settings, calibrate=False), ORF3VOracle(**settings)
    for t in range(1700):
        k = int(rng.integers(2))
        x = {name: float(rng.normal(k * j)) for j, name in enumerate("pq") if rng.random() < 0.7}
        if t and t % 3 == 0:
            assert list(model.margins_one(x).values()) == pytest.approx(oracle.scores(x), rel=1e-9, abs=1e-9), t
        model.learn_one(x, k)
        oracle.learn(x, k)


def state(model):
    names, labels, arrays = model._engine.dump()
    return names, labels, {key: array.tobytes() for key, array in arrays.items()}


@pytest.mark.parametrize("name", ["default", "paper", "prune", "gap"])
def test_both_apis_lead_to_the_same_memory(name):
    rows = stream(600, seed=1, labels=("a", "b", "c"), weights=True, late=300)
    one, many = ORF3V(**SETTINGS[name]), ORF3V(**SETTINGS[name])
    predictions = []
    for x, y, w in rows:
        predictions.append(one.predict_one(x))
        one.learn_one(x, y, w)
    block = to_block([x for x, _, _ in rows], [y for _, y, _ in rows], [w for _, _, w in rows])
    assert many.predict_learn_many(block) == predictions
    assert state(one) == state(many)


@pytest.mark.parametrize("name", ["default", "prune"])
@pytest.mark.parametrize("cut", [0, 3, 299])
def test_kept_and_continued(name, cut, tmp_path):
    rows = stream(600, seed=2, labels=("a", "b", "c"), late=150)
    model = ORF3V(**SETTINGS[name])
    for x, y, w in rows[:cut]:
        model.learn_one(x, y, w)
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    for x, y, w in rows[cut:]:
        assert model.predict_proba_one(x) == other.predict_proba_one(x)
        model.learn_one(x, y, w)
        other.learn_one(x, y, w)
    assert state(model) == state(other)


def test_predict_changes_nothing():
    rows = stream(300, seed=4)
    model = ORF3V()
    for x, y, w in rows[:200]:
        model.learn_one(x, y, w)
    before = state(model)
    for x, _, _ in rows[200:]:
        model.predict_one({**x, "never seen": 1.0})
        model.explain_one(x)
        model.votes_one(x)
    assert state(model) == before


@pytest.mark.parametrize("vote", ["prior", "paper"])
def test_votes_sum_to_the_score(vote):
    model = ORF3V(vote=vote)
    rows = stream(300, seed=5, labels=("a", "b", "c"))
    for x, y, w in rows:
        model.learn_one(x, y, w)
    for x in [*(x for x, _, _ in rows[:50]), {}, {"never seen": 1.0}]:
        votes = model.votes_one(x)
        for label, margin in model.margins_one(x).items():
            assert sum(model.explain_one(x, label).values()) == pytest.approx(margin)
            assert sum(v[label] for v in votes.values()) == pytest.approx(margin)


def test_a_vanished_feature_gives_its_memory_back_and_returns_as_new():
    model = ORF3V(window=50, delta=0.01)
    rng = np.random.default_rng(6)
    for t in range(600):
        x = {"stays": float(rng.normal(t % 2))}
        if t < 200:
            x |= {f"goes {j}": float(rng.normal(t % 2)) for j in range(30)}
            x["text"] = "pq"[t % 2]
        model.learn_one(x, t % 2)
        if t == 199:
            full = model.state_bytes()["model"]
    assert set(model.features) == {"stays"} == set(model.importances())
    assert model.state_bytes()["model"] < full / 2
    assert "31 features vanished" in model.traits.notes[0]
    with pytest.raises(UnknownNameError, match="goes 3"):
        model.feature_distribution("goes 3")
    model.learn_one({"goes 3": 1.0, "text": "p"}, 0)
    assert model.features["goes 3"].role == "waiting"
    assert model.feature_distribution("goes 3").digests[0][1].sum() == 1.0
    assert list(model.explain_one({"goes 3": 1.0, "text": "p"}, 0)) == ["goes 3", "text=p", "(intercept)"]
    assert model.explain_one({"goes 3": 1.0, "text": "p"}, 0)["text=p"] == 0.0


def churn(n, seed=0, text=True):
    """Short-lived features, some of them text, some seen again long after; about six alive at a time."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        k = int(rng.integers(2))
        x = {f"f{j % 70}": float(rng.normal(k)) for j in range(t // 60, t // 60 + 6) if rng.random() < 0.8}
        if text and rng.random() < 0.8:
            x[f"c{t // 150 % 5}"] = "pqr"[int(rng.integers(3))] if rng.random() < 0.8 else float(k)
        rows.append((x, k))
    return rows


def test_forgotten_names_free_memory_for_others_in_both_apis(tmp_path):
    rows = churn(6000)
    one, many, kept = (ORF3V(window=40, delta=0.01) for _ in range(3))
    block = to_block([x for x, _ in rows], [y for _, y in rows])
    predictions = []
    for i, (x, y) in enumerate(rows):
        predictions.append(one.predict_one(x))
        one.learn_one(x, y)
        kept.learn_one(x, y)
        if i == 3000:
            kept.save(tmp_path / "half")
            kept = load(tmp_path / "half")
    assert many.predict_learn_many(block) == predictions
    assert state(one) == state(many) == state(kept)
    assert one._engine.model.pruned > 100
    assert one._engine.space.size < 60, "slots are used again"
    assert set(one.features) >= set(one.importances()) - {f"c{j}" for j in range(5)}
    assert sum(one.state_bytes().values()) < 2 * sum(fresh_bytes(rows).values())


def fresh_bytes(rows):
    """Of a learner that saw the end of the stream only."""
    model = ORF3V(window=40, delta=0.01)
    for x, y in rows[-600:]:
        model.learn_one(x, y)
    return model.state_bytes()


def test_a_block_that_outlives_a_feature_finds_it_again():
    """A binding of names to slots must not lead to the slot's next owner."""
    rng = np.random.default_rng(12)
    rows = [({"a" if t < 200 or t >= 700 else "b": float(rng.normal(t % 2))}, t % 2) for t in range(900)]
    one, many = ORF3V(window=40, delta=0.01), ORF3V(window=40, delta=0.01)
    for x, y in rows:
        one.learn_one(x, y)
    block = to_block([x for x, _ in rows], [y for _, y in rows])
    many.learn_many(block)
    again = ORF3V(window=40, delta=0.01)
    for lo in range(0, 900, 90):
        again.learn_many(block[lo : lo + 90])
    assert state(one) == state(many) == state(again)
    assert list(one.features) == ["a"]
    assert one.features["a"].count == 200


def test_part_of_another_model_keeps_names():
    """Only an engine's own model may drop names: the other experts still need them."""
    from varifold import AutoClassifier

    model = AutoClassifier(budget="best")
    for t in range(1500):
        x = {"stays": float(t % 3)} | ({"goes": float(t % 2)} if t < 400 else {})
        model.learn_one(x, t % 2)
    assert set(model.features) == {"stays", "goes"}


def test_evicted_features_leave_nothing_behind():
    model = ORF3V(max_features=8, evict="lightest")
    for x, y, w in stream(400, seed=7):
        model.learn_one(x, y, w)
    assert len(model.features) <= 8
    rows = stream(500, seed=8)
    one, many = ORF3V(max_features=6), ORF3V(max_features=6)
    for x, y, w in rows:
        one.learn_one(x, y, w)
    many.learn_many([x for x, _, _ in rows], [y for _, y, _ in rows])
    assert state(one) == state(many)


def test_the_seed_decides_the_thresholds():
    rows = stream(100, seed=9)
    models = [ORF3V(seed=s) for s in (0, 0, 1)]
    for model in models:
        for x, y, w in rows:
            model.learn_one(x, y, w)
    thresholds = [model.feature_distribution("normal").thresholds.tolist() for model in models]
    assert thresholds[0] == thresholds[1] != thresholds[2]
    assert len(thresholds[0]) == 10
    assert models[0].traits.randomized
    assert models[0].traits.multiclass == "native"


def test_importance_follows_the_information_of_a_feature():
    model = ORF3V()
    rng = np.random.default_rng(10)
    for _ in range(2000):
        k = int(rng.integers(2))
        model.learn_one({"clear": rng.normal(3 * k), "dim": rng.normal(0.7 * k), "noise": rng.normal()}, k)
    assert list(model.importances()) == ["clear", "dim", "noise"]
    assert model.importances()["clear"] > 0.5
    assert abs(model.importances()["noise"]) < 0.03
    assert model.weights()["clear"] > 1.7
    assert model.weights()["noise"] < 1.2


@pytest.mark.parametrize("vote", ["prior", "paper"])
def test_importance_finds_the_deciding_feature_where_every_forest_favours_the_frequent_label(vote):
    """The rarer feature decides; by the share of right votes the other one, seen more often, would look better."""
    model = ORF3V(vote=vote)
    for step in range(300):
        x = {"temperature": step % 40, "site": "north" if step % 3 else "south"}
        if step % 5 == 0:
            del x["temperature"]
        model.learn_one(x, "alarm" if 10 < step % 40 < 20 else "ok")
    assert model.weights()["site"] > model.weights()["temperature"]
    assert model.importances()["temperature"] > 0.2
    assert abs(model.importances()["site"]) < 0.02
    assert list(model.importances()) == ["temperature", "site"]


@pytest.mark.parametrize("vote", ["prior", "paper"])
def test_importance_does_not_depend_on_how_often_a_feature_is_seen(vote):
    model = ORF3V(vote=vote)
    rng = np.random.default_rng(11)
    for t in range(3000):
        k = int(rng.random() < 0.2)
        x = {"often": rng.normal(k), "noise": rng.normal()}
        if t % 4 == 0:
            x["seldom"] = rng.normal(1.5 * k)
        model.learn_one(x, k)
    found = model.importances()
    assert list(found) == ["seldom", "often", "noise"]
    assert found["seldom"] > 0.1 > found["often"] > 0.04 > 0.01 > found["noise"]


@pytest.mark.parametrize(
    ("name", "value"), [("J", 0), ("alpha", 0.0), ("delta", 0.0), ("vote", "loud"), ("window", 1), ("temper", 1)]
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=name):
        ORF3V(**{name: value})
