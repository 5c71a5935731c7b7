"""Alerts: what raises them, that they are raised once, and that they reach whom they should."""

from __future__ import annotations

import argparse
import asyncio
import http.server
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.serve.server import Server, instance
from varifold.cli.serve import add_parser
from varifold.serve.alerts import AlertRules, Alerts
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.monitor import BINS, EXACT, TRACKED, Monitor
from varifold.serve.core.state import Limits


def run(tmp_path: Path, feed: Callable[[Monitor, Callable[[], list[str]]], None], rules: AlertRules) -> None:
    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        monitor = (await models.create("m", "arow", {})).state.monitor
        alerts = Alerts(models, rules)

        def check() -> list[str]:
            before = models.events.number
            alerts.check()
            return [f"{e['kind']} {e['text']}" for e in models.events.latest if e["number"] > before]

        feed(monitor, check)
        await models.stop()

    asyncio.run(main())


def test_a_feature_falls_silent_comes_back_and_a_new_one_appears(tmp_path: Path) -> None:
    def feed(monitor: Monitor, check: Callable[[], list[str]]) -> None:
        for _ in range(200):
            monitor.observe({"a": 1.0, "b": 1.0})
        assert check() == []
        for _ in range(30):
            monitor.observe({"a": 1.0, "b": None})
        assert check() == ["feature-silent b: fell silent"]
        assert check() == []
        monitor.observe({"a": 1.0, "b": 0.0})
        assert check() == ["feature-back b: back"]
        monitor.observe({"a": 1.0, "b": 1.0, "c": 1.0})
        assert check() == ["feature-new c: new"]
        for _ in range(300):
            monitor.observe({"a": 1.0})
        assert sorted(check()) == ["feature-gone b: gone for long"]  # c was seen once: nobody expects it
        monitor.observe({"a": 1.0, "c": 1.0})
        assert check() == []

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


@pytest.mark.parametrize(
    ("rules", "alarmed"),
    [
        (AlertRules(error_above=0.3), ["m"]),
        (AlertRules(error_above=0.3, error_of={"price": 4.0}), ["m", "price"]),
        (AlertRules(error_above=0.3, error_of={"price": 5.0, "m": 0.6}), []),
        (AlertRules(error_of={"m": 0.4}), ["m"]),
    ],
)
def test_the_error_of_each_model_has_its_bound(tmp_path: Path, rules: AlertRules, alarmed: list[str]) -> None:
    """Half of the answers of a classifier are wrong, a regressor is 4.1 off."""

    async def main() -> None:
        models = Models(tmp_path, Policy(), Limits(), lambda reason: None)
        models.open()
        for name, method, losses in (("m", "arow", [0.0, 1.0]), ("price", "arowregressor", [4.1, 4.1])):
            monitor = (await models.create(name, method, {})).state.monitor
            for loss in losses * 50:
                monitor.scored(loss)
        Alerts(models, rules).check()
        assert [event["model"] for event in models.events.latest if event["kind"] == "error-high"] == alarmed
        await models.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("0.3", (0.3, {})),
        ("price=20", (None, {"price": 20.0})),
        ("0.3,price=20,m=0.1", (0.3, {"price": 20.0, "m": 0.1})),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("=1", None),
        ("m=", None),
        ("0.3,0.4", None),
        ("m=1,m=2", None),
        ("", None),
    ],
)
def test_the_option_for_errors(given: str, found: object, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    asked = ["serve", "--dir", "s", f"--alert-error={given}"]
    if found is not None:
        assert parser.parse_args(asked).alert_error == found
        return
    with pytest.raises(SystemExit):
        parser.parse_args(asked)
    assert "not MODEL=number" in capsys.readouterr().err


def test_the_server_goes_on_counting_events(make_server: Callable[..., Server]) -> None:
    server = make_server("--alert-error", "m=0.1,0.3")
    numbers = []
    for start in range(2):
        server.start()
        with server.client() as client:
            client.put("/models/m", json={"method": "arow"})
            rows = [{"x": {"a": 1.0, f"b{start}": 1.0} if i < 60 else {"a": 1.0}, "y": "up"} for i in range(100)]
            client.post("/models/m/batch", content=b"\n".join(map(orjson.dumps, rows)))
            with client.stream("GET", f"/events?since={max(numbers, default=0)}") as found:
                line = next(line for line in found.iter_lines() if line.startswith("id: "))
            numbers.append(int(line[4:]))
        assert server.stop() == 0
    assert numbers[0] == 1
    assert numbers[1] > numbers[0]


def test_labels_stop_coming(tmp_path: Path) -> None:
    def feed(monitor: Monitor, check: Callable[[], list[str]]) -> None:
        for _ in range(3_000):
            monitor.observe({"a": 1.0})
            monitor.labelled()
        assert check() == []
        for _ in range(150):
            monitor.observe({"a": 1.0})
        assert [text.split()[0] for text in check()] == ["labels-dropped"]
        for _ in range(200):
            monitor.observe({"a": 1.0})
            monitor.labelled()
        assert [text.split()[0] for text in check()] == ["labels-back"]

    run(tmp_path, feed, AlertRules())


def test_the_monitor_is_bounded() -> None:
    monitor = Monitor()
    for i in range(20_000):
        monitor.observe({"always": 1.0, f"once-{i}": 1.0})
        monitor.scored(i % 2)
    assert len(monitor.names()) <= TRACKED + monitor.width
    assert len(monitor.bins) <= BINS
    assert all(len(counts) <= TRACKED + monitor.width for _, counts in monitor.bins)
    assert len(monitor.curve()) <= BINS
    always = next(row for row in monitor.features() if row["name"] == "always")
    assert set(always["share"]) == {1.0}
    assert always["count"] == 20_000


def test_the_monitor_is_bounded_in_names_that_churn() -> None:
    """30 new names per instance, also within a bin that has grown: regular ones stay, and nothing else grows."""
    monitor = Monitor()
    monitor.width = 1 << 20
    for i in range(5_000):
        rare = {"rare": 1.0} if i % 8 == 0 else {}
        monitor.observe({"always": 1.0, **{f"w{i}-{k}": 1.0 for k in range(30)}, **rare})
    monitor.observe({f"wide-{i}": 1.0 for i in range(10_000)})
    names = monitor.names()
    assert {"always", "rare"} <= set(names)
    assert len(names) <= 2 * TRACKED
    dumped = monitor.dump()
    assert all(len(dumped[part]) <= 2 * TRACKED + 1 for part in ("first", "last", "count", "bin"))
    assert monitor.count("always") == 5_000


@pytest.mark.parametrize("period", [2, 3, 4, 5, 7, 8])
def test_a_long_stream_is_sampled_whatever_its_rhythm(period: int) -> None:
    """Features that take turns are all here, and one that falls silent is seen to be."""
    monitor = Monitor()
    for i in range(EXACT + 4_000):
        monitor.observe({"always": 1.0, f"turn-{i % period}": 1.0})
    assert {monitor.presence(name) for name in monitor.names()} == {"here"}
    for _ in range(60 * period):
        monitor.observe({"always": 1.0})
    assert {name for name in monitor.names() if monitor.presence(name) == "here"} == {"always"}


def test_the_monitor_comes_back_as_it_was() -> None:
    monitor, again = Monitor(), Monitor()
    for i in range(1_000):
        monitor.observe({"a": 1.0, f"b{i // 300}": 1.0})
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


def test_what_stops_a_model_is_sent(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """A broker that is not there, reported once; a model that cannot be recovered; then a disk that fails."""
    noted = tmp_path / "noted"
    command = ["--alert-command", f"cat >> {noted}; echo >> {noted}"]
    server = make_server(*command, "--mqtt", "127.0.0.1:9", "--readings", "r/{key}").start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        client.post("/models/m/learn", json={"x": {"a": 1.0}, "y": "up"})
        server.wait_for_line("the connection to the broker failed")
        time.sleep(2.5)  # it is tried again twice
    server.kill()
    assert [event["kind"] for event in map(orjson.loads, noted.read_text().splitlines())] == ["mqtt-failed"]
    assert server.log().count("the connection to the broker failed") == 1
    noted.unlink()
    with sqlite3.connect(server.folder / "state.db") as database:
        database.execute("UPDATE changes SET sum = 0")
    server = make_server(*command, limit_file_size=300).start()
    with server.client() as client:
        assert client.get("/readyz").status_code == 503
        client.put("/models/n", json={"method": "arow"})
        for i in range(2_000):
            if client.post("/models/n/learn", json=instance(i)).status_code != 200:
                break
    assert server.process.wait(20) == 1
    events = [orjson.loads(line) for line in noted.read_text().splitlines()]
    assert {event["kind"] for event in events} == {"stopped"}
    assert events[0]["model"] == "m"
    assert "could not be recovered" in events[0]["text"]
    assert {event["model"] for event in events if "state cannot be written" in event["text"]} == {"mqtt", "n"}
