"""FESLRegressor follows the equations of FESL with the square loss, and carries what it knew through a switch."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.evolving.test_known_switch import SETTINGS, contract, instances, twin
from tests.oracles import evolving as plain
from tests.oracles.switching import follow_numbers
from varifold import AROWRegressor, FESLRegressor, from_bytes
from varifold.errors import ParameterError


def numbered(rows):
    """Numbers that depend on label and values in place of the labels."""
    return [(x, 40.0 + 9.0 * float(label[6:]) + 0.5 * sum(x.values()), w) for x, label, w in rows]


def oracle(part, setting, **more):
    made = twin(plain.SquareOGD, part, setting, **more)
    return plain.EvolvingRegression(
        plain.SquareOGD,
        part,
        made.T1,
        made.B,
        centred=made.centred,
        spread=made.spread,
        bound=made.bound,
        horizon=made.horizon,
    )


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("horizon", [None, 50])
def test_the_weighted_mean_follows_the_equations(setting, horizon):
    model = FESLRegressor(horizon=horizon, **contract(setting))
    assert follow_numbers(model, oracle("c", setting, horizon=horizon), numbered(instances(setting))) > 30
    assert sum(model.mix) == pytest.approx(1.0)
    assert model.mix[0] != 0.5


@pytest.mark.parametrize("setting", SETTINGS[:3])
@pytest.mark.parametrize("horizon", [None, 50])
def test_the_heavier_follows_the_equations(setting, horizon):
    model = FESLRegressor(combine="s", select="argmax", horizon=horizon, **contract(setting))
    follow_numbers(model, oracle("s", setting, horizon=horizon), numbered(instances(setting)))


def replaced_sensors(n: int, switch: int, overlap: int) -> list[tuple[dict[str, float], float]]:
    """Three sensors, then three others that are mixtures of them."""
    rng = random.Random(3)
    rows = []
    for step in range(n):
        a, b, c = (rng.gauss(0.0, 1.0) for _ in range(3))
        old, new = {"a": a, "b": b, "c": c}, {"u": a + b, "v": b - c, "w": a + c + b}
        x = {**(old if step < switch else {}), **(new if step >= switch - overlap else {})}
        rows.append((x, 100.0 + 20.0 * a - 10.0 * b + 5.0 * c))
    return rows


def test_what_was_learned_goes_on_after_a_switch_that_it_detects() -> None:
    rows = replaced_sensors(640, 600, 30)
    errors = {}
    for model in (FESLRegressor(), AROWRegressor()):
        found = []
        for step, (x, y) in enumerate(rows):
            if step >= 605:
                found.append(abs(model.predict_one(x) - y))
            model.learn_one(x, y)
        errors[type(model).__name__] = float(np.mean(found))
        if isinstance(model, FESLRegressor):
            assert model.switches == [601]
            assert model.features["a"].role == "mapped"
            assert "recovered" in " ".join(model.traits.notes)
    assert errors["FESLRegressor"] < 0.5 * errors["AROWRegressor"]


def test_a_step_goes_no_further_than_to_the_target() -> None:
    """With features as large as these a plain step of 2 (y - f) x would double the error each time."""
    model = FESLRegressor(scale="none")
    rng = random.Random(1)
    for _ in range(400):
        x = {f"f{j}": rng.gauss(0.0, 30.0) for j in range(6)}
        model.learn_one(x, sum(x.values()))
    x = {f"f{j}": 10.0 for j in range(6)}
    assert model.predict_one(x) == pytest.approx(60.0, abs=3.0)


def test_a_restored_learner_goes_on_to_the_bit_through_a_switch() -> None:
    model = FESLRegressor(combine="s")
    twin_ = model.clone()
    for t, (x, y) in enumerate(replaced_sensors(200, 120, 15)):
        assert model.predict_one(x) == twin_.predict_one(x)
        model.learn_one(x, y)
        twin_.learn_one(x, y)
        if t % 7 == 0:
            twin_ = from_bytes(twin_.to_bytes())
    assert model.to_bytes() == twin_.to_bytes()


def test_an_overlap_longer_than_the_stream_before_the_switch_is_rejected() -> None:
    with pytest.raises(ParameterError, match="'overlap' parameter of FESLRegressor must be at most switch=5"):
        FESLRegressor(switch=5, overlap=6)
