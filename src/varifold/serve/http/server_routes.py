"""Routes of the server: health, metrics, events, the description of the API, the dashboard."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from varifold.serve.http.messages import Request, Response, encode, json_response
from varifold.serve.http.openapi import document

if TYPE_CHECKING:
    from varifold.serve.http.app import App

_KINDS = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
}
PAGE = {"": "index.html", "dashboard.css": "dashboard.css", "dashboard.js": "dashboard.js", "charts.js": "charts.js"}
_POLICY = b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
_HEARTBEAT = 15.0


async def healthz(app: App, request: Request) -> Response:
    """Report that the process runs."""
    return json_response({"status": "ok"})


async def readyz(app: App, request: Request) -> Response:
    """Report whether every model accepts changes and its snapshots can be written; names need a token."""
    if app.stopping.is_set():
        return json_response({"status": "stopping"}, 503)
    reasons = {m.name: m.stopped or m.snapshot_failed for m in app.models}
    stopped = {name: reason for name, reason in reasons.items() if reason is not None} | app.models.unrecovered
    if app.models.stopped is not None or stopped:
        shown = {name: reason for name, reason in stopped.items() if request.grant.covers(name)}
        return json_response({"status": "stopped", "reason": app.models.stopped, "models": shown}, 503)
    return json_response({"status": "ready"})


async def metrics(app: App, request: Request) -> Response:
    """Return metrics in Prometheus' text format."""
    return Response(app.metrics.text(app), kind=b"text/plain; version=0.0.4; charset=utf-8")


async def openapi(app: App, request: Request) -> Response:
    """Return the description of the API."""
    return json_response(document())


async def page(app: App, request: Request) -> Response:
    """Return the dashboard or one of its files."""
    name = PAGE[request.argument]
    data = files("varifold.serve.dashboard").joinpath(name).read_bytes()
    headers = [
        (b"content-security-policy", _POLICY),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-cache"),
    ]
    return Response(data, kind=_KINDS[name.rpartition(".")[2]], headers=headers)


async def events(app: App, request: Request) -> None:
    """Send server-sent events: those after the given number, then new ones; of all, of a model, or of a device."""
    since = request.header(b"last-event-id") or (request.query("since") or "").encode()
    after = int(since) if since.isdigit() and len(since) < 16 else 0
    queue = app.models.events.listen()
    head = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await request.send({"type": "http.response.start", "status": 200, "headers": head})
        past = [e for e in app.models.events.latest if e["number"] > after and _wanted(request, e)]
        await _send(request, b": open\n\n")
        for event in past:  # one at a time: `_send` waits for a client that reads slowly
            await _send(request, _event(event))
        while not gone.done() and not app.stopping.is_set():
            waiting = asyncio.ensure_future(queue.get())
            stop = asyncio.ensure_future(app.stopping.wait())
            done, _ = await asyncio.wait({waiting, gone, stop}, timeout=_HEARTBEAT, return_when="FIRST_COMPLETED")
            stop.cancel()
            grant = request.renewed()
            if grant is None:
                waiting.cancel()
                break
            request.grant = grant
            if waiting in done:
                if _wanted(request, waiting.result()):
                    await _send(request, _event(waiting.result()))
            else:
                waiting.cancel()
                await _send(request, b": still here\n\n")
        await request.send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()
        app.models.events.leave(queue)


def _wanted(request: Request, event: dict[str, Any]) -> bool:
    """Return whether an event is of the model and device of the query, and whether the token covers it."""
    model, key = request.query("model"), request.query("key")
    if not request.grant.covers(event["model"]) or model not in (None, event["model"]):
        return False
    return key is None or key in map(str, event.get("keys", ()))


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _event(event: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event["number"], str(event["kind"]).encode(), encode(event))


async def _send(request: Request, data: bytes) -> None:
    await request.send({"type": "http.response.body", "body": data, "more_body": True})
