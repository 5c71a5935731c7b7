import numpy as np
import pytest

from varifold.report.evolving import Switch, around, plot_switches


def test_no_window_crosses_the_switch():
    wrong = [[1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 1]]
    np.testing.assert_allclose(around(wrong, at=3, width=2), [1.0, 0.75, 0.25, 0.0, 0.25, 0.75])


def test_the_picture_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    wrong = {name: rng.random((3, 120)) < 0.3 for name in ("CWFE-c", "NCW", "RCW-u", "RCW-f")}
    plot_switches([Switch("a", wrong, 60, 10), Switch("b", wrong, 60, 10)], tmp_path / "switch.png")
    assert (tmp_path / "switch.png").stat().st_size > 10_000
