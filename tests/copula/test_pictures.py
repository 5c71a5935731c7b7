"""The pictures are written, with and without names."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from varifold import AROW, OVFM
from varifold.cli import main
from varifold.report.copula import plot_correlation


@pytest.mark.parametrize("d", [3, 80])
def test_heat_map(tmp_path, d):
    plot_correlation([f"f{j}" for j in range(d)], np.eye(d), tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 2000


def test_inspect_draws_the_correlation(tmp_path, capsys):
    learner = OVFM()
    for step in range(60):
        learner.learn_one({"a": step % 7, "b": 2.0 * (step % 7), "c": step % 5}, step % 2)
    learner.save(tmp_path / "m.vf")
    assert main(["inspect", str(tmp_path / "m.vf"), "--plot", str(tmp_path / "map.png")]) == 0
    assert (tmp_path / "map.png").stat().st_size > 2000


def test_inspect_says_who_has_no_correlation(tmp_path, capsys):
    learner = AROW()
    learner.learn_one({"a": 1.0}, 1)
    learner.save(tmp_path / "m.vf")
    assert main(["inspect", str(tmp_path / "m.vf"), "--plot", str(tmp_path / "map.png")]) != 0
    assert "arow has none" in capsys.readouterr().err
