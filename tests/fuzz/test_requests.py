"""Hostile requests to every route, without a network: none fails, none stops a model, and a crash loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import varifold
from varifold.base.json_text import write_json
from varifold.errors import VarifoldError
from varifold.serve import bridge
from varifold.serve.core import learners
from varifold.serve.core.budget import ServerBudget
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.state import Limits
from varifold.serve.http.app import App, BodyLimits

HUGE = "1" + "0" * 25
"""Beyond 64 bits: orjson reads it as a float, json as an int."""
NUMBERS = [
    *("0", "1", "-0", "2.5", "-1", "1e308", "-1e308", "5e-324", "1e-320", "1e999", "NaN", "Infinity", "-Infinity"),
    *(HUGE, f"-{HUGE}", f"{HUGE}.5", "1" * 400, "1" * 5000, "1e25", "9223372036854775807", "9223372036854775808"),
    *("18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809"),
]
TEXTS = [
    *('"up"', '"down"', '""', '"1"', '" 1 "', '"a=b"', '"nan"', '"NA"', '"2026-01-01"', '"12:30"', '"(intercept)"'),
    *('"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '"<script>"', f'"{"z" * 300}"', f'"{"y" * 5000}"'),
]
VALUES = [*NUMBERS, *TEXTS, "null", "true", "false", "[]", "[1]", "{}", '{"a":1}', '{"a":{"b":NaN}}', "{", ""]
NAMES = ["a", "b", "y", "a=b", "", "x", "(intercept)", "a.b", "key", "id", "target", "ts", "\\u0000", "1", "n" * 300]
MODELS: dict[str, dict[str, Any]] = {
    "plain": {"method": "arow"},
    "auto": {"method": "auto"},
    "number": {"method": "autoregressor"},
    "keyed": {"method": "arow", "key": "key"},
    "keyed-number": {"method": "olvfregressor", "key": "a"},
    "bounded": {"method": "orf3v", "params": {"max_features": 20}},
    "sets": {"method": "arow", "params": {"coverages": [0.9], "calibrate": True}},
    "rules": {"method": "arow", "input": {"target": "target", "id": "id", "time": "ts", "dates": {"b": ["hour"]}}},
    "detector": {"method": "autodetector"},
    "keyed-detector": {"method": "taildetector", "key": "key"},
    "asking": {"method": "arow", "ask": {"budget": 0.5}},
    "keyed-rules": {"method": "nb3", "input": {"target": "target", "id": "id", "key": "key"}},
}
QUERIES = ["", "key=1", "key=up", "key=%ff", f"key={HUGE}", "limit=5", "limit=-1", "limit=\xb2", "search=u"]


class Hostile:
    """Requests drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def value(self) -> str:
        return self.rng.choice(VALUES)

    def fields(self, names: list[str], share: float) -> list[str]:
        return [f'"{name}":{self.value()}' for name in names if self.rng.random() < share]

    def instance(self) -> str:
        rng = self.rng
        if rng.random() < 0.6:  # one that can be learned
            numbers = ["1", "2.5", "-1", "0", "null", "NaN"]
            return "{" + ",".join(f'"{name}":{rng.choice(numbers)}' for name in rng.sample("abcd", 2)) + "}"
        return "{" + ",".join(f'"{rng.choice(NAMES)}":{self.value()}' for _ in range(rng.randrange(5))) + "}"

    def row(self) -> bytes:
        rng = self.rng
        parts = [f'"x":{self.instance()}'] if rng.random() < 0.9 else []
        parts += self.fields(["y"], 0.7) + self.fields(["w", "id", "key", "keep", "predict", "label", "z"], 0.1)
        for name, values in (("keep", ["true"]), ("id", ["1", "2", '"2"', HUGE]), ("key", ["1", '"1"', "-1", HUGE])):
            parts += [f'"{name}":{rng.choice(values)}'] if rng.random() < 0.3 else []
        text = "{" + ",".join(parts) + "}"
        return text[: rng.randrange(len(text)) if rng.random() < 0.03 else None].encode()

    def model(self) -> bytes:
        rng = self.rng
        method = rng.choice([*varifold.models, *varifold.detectors, "none"])
        names = list(inspect.signature({**varifold.models, **varifold.detectors}.get(method, varifold.AROW)).parameters)
        rules = self.fields(["id", "key", "target", "time", "ignore", "flatten", "dates", "types", "z"], 0.1)
        parts = [f'"method":"{method}"', f'"params":{{{",".join(self.fields(rng.sample(names, 2), 0.5))}}}']
        parts += [*self.fields(["key"], 0.2), f'"input":{{{",".join(rules)}}}']
        return ("{" + ",".join(parts) + "}").encode()

    def message(self, app: App) -> None:
        """Send a reading or a label to a model, as the bridges of MQTT and Kafka do."""
        model = app.models[self.rng.choice(list(MODELS))]
        read = self.rng.choice([bridge.reading, bridge.reading, bridge.label])
        with contextlib.suppress(VarifoldError):
            body = read(model, self.instance().encode(), self.rng.choice([None, "1", "k" * 300, "\u202e"]))
            model.submit(body, write_json(body))

    def request(self, app: App) -> tuple[str, str, bytes, str]:
        """Return a method, a path, a body and a query."""
        rng = self.rng
        name, new = rng.choice(list(MODELS)), f"new{rng.randrange(3)}"
        kept = rng.choice(["1", "2", HUGE, f"{name}.{app.models[name].state.incarnation}.{rng.randrange(60)}"])
        return rng.choices(
            [
                ("POST", f"/models/{name}/learn", self.row(), ""),
                ("POST", f"/models/{name}/predict", self.row(), ""),
                ("POST", f"/models/{name}/batch", b"\n".join(self.row() for _ in range(5)), ""),
                ("POST", f"/models/{name}/explain", self.row(), ""),
                ("POST", f"/models/{name}/labels", f'{{"id":{kept[:2]},"y":{self.value()}}}'.encode(), ""),
                ("POST", f"/labels/{kept}", f'{{"y":{self.value()}}}'.encode(), ""),
                ("PUT", f"/models/{new}", self.model(), ""),
                ("DELETE", f"/models/{new}", b"", ""),
                ("GET", f"/models/{name}", b"", ""),
                ("GET", f"/models/{name}/{rng.choice(['features', 'devices', 'report'])}", b"", rng.choice(QUERIES)),
                ("GET", rng.choice(["/models", "/metrics", "/readyz", "/openapi.json"]), b"", rng.choice(QUERIES)),
            ],
            [40, 15, 10, 6, 6, 3, 5, 2, 3, 4, 2],
        )[0]


async def send(app: App, method: str, path: str, body: bytes, query: str) -> tuple[int, bytes]:
    """Call the application as an ASGI server does; return the status and the body of the response."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])
    status, out = 0, []

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    async def reply(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)
        out.append(message.get("body", b""))

    scope = {"type": "http", "method": method, "path": path, "headers": [(b"host", b"127.0.0.1")]}
    scope["query_string"] = query.encode("latin-1")
    await app(scope, receive, reply)
    return status, b"".join(out)


def facts(models: Models) -> dict[str, tuple[Any, ...]]:
    """Describe the state of every model."""
    return {
        m.name: (learners.digest(m.state.learner), m.state.seq, len(m.state.waiting), len(m.state.ids)) for m in models
    }


async def attack(folder: Path, seed: int, requests: int) -> None:
    fatal: list[str] = []
    limits, budget = Limits(waiting=50, ids=200, labels=30), ServerBudget(1 << 30, 1 << 28)
    models = Models(folder, Policy("never", snapshot_every=500), limits, fatal.append, budget)
    models.open()
    app = App(models, None, BodyLimits())
    for name, body in MODELS.items():
        assert (await send(app, "PUT", f"/models/{name}", json.dumps(body).encode(), ""))[0] == 201
    hostile = Hostile(seed)
    for k in range(requests):
        if k % 10 == 0:
            hostile.message(app)
        request = hostile.request(app)
        status, response = await send(app, *request)
        assert 200 <= status < 500 or status == 507, (k, request, response)
        assert b'"status":50' not in response or b'"status":507' in response, (k, request, response)
        await asyncio.sleep(0)
    assert not fatal
    assert not [model.stopped or model.snapshot_failed for model in models if model.stopped or model.snapshot_failed]
    for model in models:
        await model.drain()
    before = facts(models)
    assert sum(fact[1] for fact in before.values()) > requests // 20, "too few of the requests were accepted"
    models.committer.disk.shutdown()  # end as a crash does
    models.committer.packing.shutdown()
    models.database.close()
    os.close(models._lock)
    again = Models(folder, Policy("never"), limits, fatal.append, ServerBudget(1 << 30, 1 << 28))
    again.open()
    assert not again.unrecovered
    assert not [one for model in again if model.recovery for one in model.recovery.set_aside]
    assert facts(again) == before
    await again.stop()


@pytest.mark.parametrize("seed", range(2))
def test_no_request_stops_a_model(seed: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    asyncio.run(attack(tmp_path, seed, max(1_000, request.config.getoption("--instances") // 10)))
