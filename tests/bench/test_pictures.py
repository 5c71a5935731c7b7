"""Pictures that scripts in benchmarks/ draw."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    yield lambda name: importlib.import_module(f"benchmarks.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_births_and_deaths_are_first_and_last_occurrences(script: Any) -> None:
    shares = np.array([[1, 1, 1, 1], [0, 0.5, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]])
    births, deaths = script("over_time").births_and_deaths(shares)
    assert births.tolist() == [0, 2, 0, 0]
    assert deaths.tolist() == [0, 1, 0, 0]


def test_no_window_crosses_the_switch(script: Any) -> None:
    wrong = [[1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 1]]
    errors = script("switch_plot").around(wrong, at=3, width=2)
    np.testing.assert_allclose(errors, [1.0, 0.75, 0.25, 0.0, 0.25, 0.75])


def test_the_error_around_a_switch_is_drawn(script: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    wrong = {name: rng.random((3, 120)) < 0.3 for name in ("CWFE-c", "NCW", "RCW-u", "RCW-f")}
    plot = script("switch_plot")
    plot.plot_switches([plot.Switch("a", wrong, 60, 10), plot.Switch("b", wrong, 60, 10)], tmp_path / "switch.png")
    assert (tmp_path / "switch.png").stat().st_size > 10_000


def test_the_recovery_of_a_correlation_is_drawn(script: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    errors = {"mixed": [[0.4, 0.3, 0.2], [0.5, 0.3, 0.25]]}
    script("copula_tables").plot_recovery([100, 200, 400], errors, tmp_path / "recovery.png")
    assert (tmp_path / "recovery.png").stat().st_size > 2000
