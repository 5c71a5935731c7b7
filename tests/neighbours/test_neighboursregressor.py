"""NeighboursRegressor predicts the mean of the targets of the nearest instances, as plain Python finds them."""

from __future__ import annotations

import numpy as np
import pytest

from varifold import NeighboursRegressor


def plain(past: list[tuple[dict[str, float], float, float]], x: dict[str, float], k: int, mean: float) -> float:
    """Distances over shared features, shrunk by two unrelated ones; the mean of all targets counts as one more."""
    near = []
    for at, (other, y, w) in enumerate(past):
        shared = [x[name] - other[name] for name in x if name in other]
        near.append(((4.0 + sum(d * d for d in shared)) / (2.0 + len(shared)), at, y, w))
    chosen = sorted(near)[:k]
    return (mean + sum(w * y for _, _, y, w in chosen)) / (1.0 + sum(w for *_, w in chosen))


@pytest.mark.parametrize("k", [1, 5])
def test_every_prediction_is_that_of_plain_python(k: int) -> None:
    rng = np.random.default_rng(k)
    model = NeighboursRegressor(k=k, window=40, scale="none")
    past: list[tuple[dict[str, float], float, float]] = []
    targets: list[tuple[float, float]] = []
    for step in range(150):
        x = {f"f{j}": float(rng.normal()) for j in range(4) if rng.random() < 0.7}
        y, w = float(10.0 + 5.0 * x.get("f0", 0.0) + rng.normal()), float(rng.choice([0.5, 1.0, 3.0]))
        known = {name: v for name, v in x.items() if any(name in other for other, _, _ in past)}
        if targets:
            mean = float(np.average(*np.array(targets).T[:1], weights=np.array(targets).T[1]))
            expected = plain(past[-40:], known, k, mean) if known else mean
            assert model.predict_one(x) == pytest.approx(expected, rel=1e-9), f"step {step}"
        model.learn_one(x, y, w)
        targets.append((y, w))
        if x:
            past.append((x, y, w))


def test_it_learns_a_product() -> None:
    rng = np.random.default_rng(0)
    model = NeighboursRegressor()
    errors = []
    for _ in range(600):
        a, b = rng.normal(size=2).tolist()
        errors.append(abs(model.predict_one({"a": a, "b": b}) - a * b))
        model.learn_one({"a": a, "b": b}, a * b)
    assert np.mean(errors[-200:]) < 0.5 * np.mean(np.abs(errors[:50]))
