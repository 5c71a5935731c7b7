from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.serve.server import Server


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
