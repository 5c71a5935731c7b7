"""Alerts: what raises them, that they are raised once, and that they reach whom they should."""

from __future__ import annotations

import asyncio
import http.server
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.serve.server import Server
from varifold.serve.alerts import AlertRules, Alerts
from varifold.serve.core.models import Models
from varifold.serve.core.monitor import BINS, EXACT, TRACKED, Monitor
from varifold.serve.core.state import Limits
from varifold.serve.core.store import Policy


def run(tmp_path: Path, feed: Callable[[Monitor, Callable[[], list[str]]], None], rules: AlertRules) -> None:
    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        monitor = models.create("m", "arow", {}).store.state.monitor
        alerts = Alerts(models, rules)

        def check() -> list[str]:
            before = models.events.number
            alerts.check()
            return [f"{e['kind']} {e['text']}" for e in models.events.latest if e["number"] > before]

        feed(monitor, check)
        os.close(models._lock)

    asyncio.run(main())


def test_a_feature_falls_silent_comes_back_and_a_new_one_appears(tmp_path: Path) -> None:
    def feed(monitor: Monitor, check: Callable[[], list[str]]) -> None:
        for _ in range(200):
            monitor.saw({"a": 1.0, "b": 1.0})
        assert check() == []
        for _ in range(30):
            monitor.saw({"a": 1.0, "b": None})
        assert check() == ["feature-silent b: fell silent"]
        assert check() == []
        monitor.saw({"a": 1.0, "b": 0.0})
        assert check() == ["feature-back b: back"]
        monitor.saw({"a": 1.0, "b": 1.0, "c": 1.0})
        assert check() == ["feature-new c: new"]
        for _ in range(300):
            monitor.saw({"a": 1.0})
        assert sorted(check()) == ["feature-gone b, c: gone for long"]

    run(tmp_path, feed, AlertRules())


def test_the_error_is_high_once(tmp_path: Path) -> None:
    def feed(monitor: Monitor, check: Callable[[], list[str]]) -> None:
        for i in range(200):
            monitor.scored(float(i > 100))
        assert [text.split()[0] for text in check()] == ["error-high"]
        assert check() == []
        for _ in range(200):
            monitor.scored(0.0)
        assert [text.split()[0] for text in check()] == ["error-normal"]

    run(tmp_path, feed, AlertRules(error_above=0.3))


def test_labels_stop_coming(tmp_path: Path) -> None:
    def feed(monitor: Monitor, check: Callable[[], list[str]]) -> None:
        for _ in range(3_000):
            monitor.saw({"a": 1.0})
            monitor.labelled()
        assert check() == []
        for _ in range(150):
            monitor.saw({"a": 1.0})
        assert [text.split()[0] for text in check()] == ["labels-dropped"]
        for _ in range(200):
            monitor.saw({"a": 1.0})
            monitor.labelled()
        assert [text.split()[0] for text in check()] == ["labels-back"]

    run(tmp_path, feed, AlertRules())


def test_the_monitor_is_bounded() -> None:
    monitor = Monitor()
    for i in range(20_000):
        monitor.saw({"always": 1.0, f"once-{i}": 1.0})
        monitor.scored(i % 2)
    assert len(monitor.names()) <= TRACKED + monitor.width
    assert len(monitor.bins) <= BINS
    assert all(len(counts) <= TRACKED + monitor.width for _, counts in monitor.bins)
    assert len(monitor.curve()) <= BINS
    always = next(row for row in monitor.features() if row["name"] == "always")
    assert set(always["share"]) == {1.0}
    assert always["count"] == 20_000


@pytest.mark.parametrize("period", [2, 3, 4, 5, 7, 8])
def test_a_long_stream_is_sampled_whatever_its_rhythm(period: int) -> None:
    """Features that take turns are all here, and one that falls silent is seen to be."""
    monitor = Monitor()
    for i in range(EXACT + 4_000):
        monitor.saw({"always": 1.0, f"turn-{i % period}": 1.0})
    assert {monitor.presence(name) for name in monitor.names()} == {"here"}
    for _ in range(60 * period):
        monitor.saw({"always": 1.0})
    assert {name for name in monitor.names() if monitor.presence(name) == "here"} == {"always"}


def test_the_monitor_comes_back_as_it_was() -> None:
    monitor, again = Monitor(), Monitor()
    for i in range(1_000):
        monitor.saw({"a": 1.0, f"b{i // 300}": 1.0})
        monitor.scored(i % 3 == 0)
    again.fill(orjson.loads(orjson.dumps(monitor.dump())))
    assert again.features() == monitor.features()
    assert again.curve() == monitor.curve()


class _Hook(http.server.BaseHTTPRequestHandler):
    received: list[dict[str, object]]

    def do_POST(self) -> None:
        self.received.append(orjson.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_alerts_reach_a_webhook_and_a_command(make_server: Callable[..., Server], tmp_path: Path) -> None:
    received: list[dict[str, object]] = []
    handler = type("Hook", (_Hook,), {"received": received})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as hook:
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        noted = tmp_path / "noted"
        url = f"http://127.0.0.1:{hook.server_port}/"
        server = make_server("--alert-webhook", url, "--alert-command", f"cat >> {noted}").start()
        with server.client() as client:
            client.put("/models/m", json={"method": "arow"})
            rows = [{"x": {"a": 1.0, "b": 1.0} if i < 60 else {"a": 1.0}, "y": "up"} for i in range(100)]
            client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows)))
            end = time.monotonic() + 15
            while time.monotonic() < end and not (received and noted.exists() and noted.stat().st_size):
                time.sleep(0.05)
            metrics = client.get("/metrics").text
        hook.shutdown()
    assert received[0]["kind"] == "feature-silent"
    assert orjson.loads(noted.read_bytes())["features"] == ["b"]
    assert 'varifold_events_total{kind="feature-silent",model="m"} 1.0' in metrics or (
        'varifold_events_total{model="m",kind="feature-silent"} 1.0' in metrics
    )


@pytest.mark.parametrize("option", ["--alert-webhook", "--alert-command"])
def test_an_alert_that_does_not_arrive_is_said_and_nothing_else(
    make_server: Callable[..., Server], option: str
) -> None:
    server = make_server(
        option, {"--alert-webhook": "http://127.0.0.1:9/", "--alert-command": "exit 3"}[option]
    ).start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        rows = [{"x": {"a": 1.0, "b": 1.0} if i < 60 else {"a": 1.0}, "y": "up"} for i in range(100)]
        client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows)))
        server.wait_for_line("an alert did not reach")
        assert client.get("/readyz").status_code == 200
