"""Pictures of forests are written, and say what is missing."""

import numpy as np
import pytest

from varifold import ORF3V, to_block
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.evaluate import prequential

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from varifold.report.forest import plot_feature, plot_importances


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 9)) + y[:, None] * np.linspace(0, 2, 9)
    X[:, 0] = rng.poisson(2 + y)
    X[200:, 1] = np.nan
    model = ORF3V(window=40, delta=0.01)
    names = [f"f{j}" for j in range(9)]
    result = prequential(model, to_block(X, y.tolist(), names=names), track="importances")
    return model, result


def is_picture(path):
    return path.read_bytes()[:4] == b"\x89PNG" and path.stat().st_size > 10_000


def test_importances_over_time(run, tmp_path):
    _, result = run
    assert "f1" in result.curve.importances[50]
    assert "f1" not in result.curve.importances[-1]
    plot_importances(result, tmp_path / "a.png", "title", top=3)
    assert is_picture(tmp_path / "a.png")


@pytest.mark.parametrize("feature", ["f0", "f8"])
def test_distributions_of_a_feature(run, tmp_path, feature):
    plot_feature(run[0], feature, tmp_path / "a.png")
    assert is_picture(tmp_path / "a.png")


def test_what_cannot_be_drawn_is_rejected(run, tmp_path):
    model, _ = run
    with pytest.raises(UnknownNameError, match="f1"):
        plot_feature(model, "f1", tmp_path / "a.png")
    with pytest.raises(ParameterError, match="picture format"):
        plot_feature(model, "f8", tmp_path / "a.doc")
    untracked = prequential(ORF3V(), to_block([{"a": 1.0}], ["x"]))
    with pytest.raises(DataError, match="track='importances'"):
        plot_importances(untracked, tmp_path / "a.png")
