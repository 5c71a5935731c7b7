from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import httpx
import pytest

from tests.serve.server import Server, numbers


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Makes server processes on one folder; none outlives the test."""
    made: list[Server] = []

    def make(*options: str, limit_file_size: int | None = None) -> Server:
        made.append(Server(tmp_path / "state", *options, limit_file_size=limit_file_size))
        return made[-1]

    yield make
    for server in made:
        if hasattr(server, "process") and server.process.poll() is None:
            server.kill()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of a file that leave it as they found it."""
    server = Server(tmp_path_factory.mktemp("shared") / "state", "--max-body", "20000", "--max-waiting", "50").start()
    yield server
    server.kill()


@pytest.fixture
def client(shared: Server) -> Iterator[httpx.Client]:
    with shared.client() as client:
        yield client


@pytest.fixture
def model(client: httpx.Client) -> str:
    """A new model of the server."""
    name = f"m{next(numbers)}"
    assert client.put(f"/models/{name}", json={"method": "arow"}).status_code == 201
    return name


def browser() -> str | None:
    """The path of chromium, if it is here."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := which(name))), None)


def mosquitto() -> str | None:
    """The path of the MQTT broker, if it is here; Debian keeps it out of the users' path."""
    return which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


NEEDS = {"browser": (browser, "chromium"), "mosquitto": (mosquitto, "mosquitto")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what needs a missing program; where everything must run (VARIFOLD_COMPLETE), that is an error."""
    for mark, (find, package) in NEEDS.items():
        marked = [item for item in items if item.get_closest_marker(mark)]
        if not marked or find() is not None:
            continue
        if os.environ.get("VARIFOLD_COMPLETE"):
            raise pytest.UsageError(f"{len(marked)} tests need {package}: apt-get install {package}")
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for _, package in NEEDS.values():
        left_out = sum(f"{package} is not installed" in reason for reason in reasons)
        if left_out:
            terminalreporter.write_line(
                f"{left_out} tests were left out: they need {package} (apt-get install {package})"
            )
