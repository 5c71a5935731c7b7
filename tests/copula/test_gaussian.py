import numpy as np
import pytest

from tests.engines import class_engine
from tests.oracles.gaussian import Gaussians
from varifold.copula._gaussian import GaussianModel


def instances(rows, labels, seed=0):
    """Correlated values, some absent, one feature that comes late; labels by the product of two."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(6, 6))
    for t in range(rows):
        z = np.clip(mix @ rng.normal(size=6), -10, 10)
        x = {j: float(z[j]) for j in range(6) if rng.random() < 0.6 and (j < 5 or t > 40)} or {0: float(z[0])}
        yield x, labels[int(z[0] * z[1] > 0) + int(z[2] > 1) * (len(labels) > 2)], float(rng.integers(1, 3))


@pytest.mark.parametrize("labels", ["ab", "abc"])
@pytest.mark.parametrize("every", [1, 4])
def test_follows_the_oracle(labels, every):
    """With every fourth label the other instances are learned without one."""
    engine, oracle, met = class_engine(GaussianModel(), scale="none"), Gaussians(6), []
    for t, (x, y, w) in enumerate(instances(200 * every, labels)):
        if t % every:
            engine.learn_one(x, None, w)
            oracle.learn_unlabelled(x, w)
            continue
        known = {j: v for j, v in x.items() if oracle.seen[j]}
        if len(met) > 1 and known:
            found = engine.margins_one(x)
            assert [found[c] for c in met] == pytest.approx(oracle.scores(known), abs=1e-9)
        engine.learn_one(x, y, w)
        if y not in met:
            met.append(y)
            oracle.add_class()
        oracle.learn(x, met.index(y), w)


def test_goes_on_after_a_file_as_without_one():
    stream = list(instances(150, "abc"))
    engine = class_engine(GaussianModel())
    for x, y, w in stream[:100]:
        engine.learn_one(x, y, w)
    twin = class_engine(GaussianModel())
    twin.fill(*engine.dump())
    for x, y, w in stream[100:]:
        assert twin.predict_proba_one(x) == engine.predict_proba_one(x)
        for e in (engine, twin):
            e.learn_one(x, y, w)


def test_features_beyond_its_capacity_are_left_out_and_reported():
    engine = class_engine(GaussianModel(3))
    rng = np.random.default_rng(0)
    for _ in range(50):
        engine.learn_one({f"f{j}": float(rng.normal()) for j in range(5)}, int(rng.integers(2)))
    assert engine.model.notes() == ["features beyond the first 2 are not looked at"]
    assert engine.predict_proba_one({"f4": 9.0}) == engine.predict_proba_one({"f3": -9.0})


def test_an_evicted_feature_is_forgotten():
    engine = class_engine(GaussianModel(), max_features=3)
    for t in range(60):
        engine.learn_one({f"f{t % 9}": float(t), "g": float(t % 2)}, t % 2)
    arrays = engine.dump()[2]
    fresh = arrays["model.seen"] < 2
    assert np.isfinite(arrays["model.cov"]).all()
    off = arrays["model.cov"][:, fresh][:, :, ~fresh]
    assert (off == 0).all()
