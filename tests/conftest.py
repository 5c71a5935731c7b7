"""Tests on the original data sets run when VARIFOLD_DATA names their folder; otherwise they are counted and named."""

from __future__ import annotations

import gc
import os
import signal

import pytest

NO_DATA = "VARIFOLD_DATA is not set"

# A shell that starts the tests in the background lets them ignore Ctrl-C, which processes of the tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--instances", type=int, default=3_000, help="extreme instances for tests/fuzz")
    parser.addoption("--gc-threshold", type=int, help="collect garbage after so many new objects, for `make sanitize`")


def pytest_configure(config: pytest.Config) -> None:
    threshold = config.getoption("--gc-threshold")
    if threshold is not None:
        gc.set_threshold(threshold)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("VARIFOLD_DATA"):
        return
    for item in items:
        if item.get_closest_marker("real_data"):
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_collection_finish() -> None:
    """Exempt what is imported by now from garbage collection: river's checks collect often, .3 s each time."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = sum(NO_DATA in str(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
    if left_out:
        terminalreporter.write_line(f"{left_out} tests on real data were left out: set VARIFOLD_DATA to run them")
