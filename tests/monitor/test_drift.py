import numpy as np
import pytest

from tests.oracles import drift as oracle
from varifold.monitor.drift import Distribution, _spacing, uniform


@pytest.mark.parametrize("kind", ["normal", "counts", "constant, then not"])
def test_drift_follows_its_oracle(kind):
    rng = np.random.default_rng(4)
    values = {
        "normal": rng.normal(size=2000) + (np.arange(2000) > 1500),
        "counts": rng.poisson(2.0, size=2000).astype(float),
        "constant, then not": np.where(np.arange(2000) < 900, 1.0, rng.integers(1, 3, size=2000)),
    }[kind]
    ours, plain = Distribution(1e4, 0.3), oracle.Drift(1e4, 0.3)
    for start in range(0, 2000, 40):
        steps = np.arange(start + 1, start + 41)
        draws = np.stack([uniform(steps, 1), uniform(steps, 2)])
        chunk = values[start : start + 40]
        expected = plain.update(draws[1], chunk)
        alarm = ours.update(steps, draws, chunk)
        if expected is None:
            assert alarm is None
            continue
        assert ours.spacing == 1
        assert (alarm is not None) == (expected >= 1e4)
        if alarm is not None:
            break
        after = np.array(list(plain.wealth.values())).reshape(2, 6)
        np.testing.assert_allclose(ours._wealth, after, rtol=1e-9)
    assert (alarm is not None) == (kind != "counts")


def test_spacing_follows_its_oracle():
    rng = np.random.default_rng(0)
    for memory in (0.0, 0.5, 0.9, 0.999):
        values = np.zeros(256)
        for i in range(1, 256):
            values[i] = memory * values[i - 1] + rng.normal()
        assert _spacing(values) == oracle.spacing(values.tolist())
    assert _spacing(np.ones(256)) == 1


def test_uniform_draws_are_uniform_and_depend_on_the_seed():
    draws = uniform(np.arange(100_000), 1)
    assert abs(draws.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(draws, uniform(np.arange(100_000), 2))[0, 1]) < 0.02


def test_quantiles_are_those_of_the_values():
    rng = np.random.default_rng(2)
    ours = Distribution(1e9, 0.0)
    values = rng.normal(10.0, 2.0, size=5000)
    for start in range(0, 5000, 50):
        steps = np.arange(start + 1, start + 51)
        ours.update(steps, np.stack([uniform(steps, 1), uniform(steps, 2)]), values[start : start + 50])
    from varifold.monitor.drift import LEVELS

    np.testing.assert_allclose(ours.quantiles(), np.quantile(values, LEVELS), atol=0.3)
