"""The pictures are written, with and without names."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from varifold.report.copula import plot_correlation, plot_recovery


@pytest.mark.parametrize("d", [3, 80])
def test_heat_map(tmp_path, d):
    plot_correlation([f"f{j}" for j in range(d)], np.eye(d), tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 2000


def test_recovery(tmp_path):
    plot_recovery([100, 200, 400], {"mixed": [[0.4, 0.3, 0.2], [0.5, 0.3, 0.25]]}, tmp_path / "recovery.png")
    assert (tmp_path / "recovery.png").stat().st_size > 2000
