"""Routes below ``/models``: predict, learn, label, explain, and manage models."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from varifold.base.learner import is_regressor
from varifold.ensemble.per_key import Key, KeyedLearner
from varifold.errors import VarifoldError
from varifold.serve import reports
from varifold.serve.core import bodies
from varifold.serve.core.devices import Device
from varifold.serve.core.errors import (
    BusyError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    RejectedError,
    RequestError,
    StoppedError,
)
from varifold.serve.core.group_commit import Acknowledgement
from varifold.serve.core.models import Model, ModelDescription
from varifold.serve.core.state import ModelState
from varifold.serve.http import rows
from varifold.serve.http.messages import NDJSON, Request, Response, encode, json_response
from varifold.serve.http.tokens import WRITE, Grant

if TYPE_CHECKING:
    from varifold.serve.http.app import App

_MOST_SHOWN = 5
_MOST_DEVICES = 10_000
_MOST_LISTED = 100
_FEATURES, _MOST_FEATURES = 10_000, 100_000
"""Features that are listed: other requests wait while they are described."""
_FILES = 4
"""Most model files that are made or sent at a time."""


async def predict(app: App, request: Request) -> Response:
    """Predict an instance; with keep, it waits for its label; with a y of null, it is also learned without one now."""
    data = await request.body(app.limits.body)
    model = app.models[request.argument]
    await model.turn()
    result = start_predict(model, data, request.grant)
    return Response(encode(result if isinstance(result, dict) else await result))


def start_predict(model: Model, data: bytes, grant: Grant, done: Acknowledgement | None = None) -> Any:
    """Return the prediction of an instance, or a future of it if it is to be kept."""
    body, data = model.state.rules.parse_instance(data)
    if not body.get("keep"):
        return model.state.predict(body)
    if grant.scope < WRITE:
        raise ForbiddenError("this token may read, not write: keep changes the state")
    if model.state.detects:
        raise RejectedError(f"the model {model.name!r} is a detector, which learns what it keeps: send it to learn")
    if body.get("y") is not None:
        raise RejectedError("an instance that is kept has no label yet: leave out y, or send it to learn")
    return model.submit(body, data, done=done)


async def learn(app: App, request: Request) -> Response:
    """Learn an instance, whose label may be null or, with a detector, missing; responded to once it is on disk."""
    data = await request.body(app.limits.body)
    model = app.models[request.argument]
    await model.turn()
    return Response(encode(await start_learn(model, data, request.grant)))


def start_learn(model: Model, data: bytes, grant: Grant, done: Acknowledgement | None = None) -> Any:
    """Learn an instance; return a future of the response."""
    body, data = model.state.rules.parse_instance(data)
    if not model.state.detects:
        bodies.check_label(body)
    return model.submit(body, data, done=done)


async def label(app: App, request: Request) -> Response:
    """Learn a kept instance with its label."""
    body = bodies.parse(await request.body(app.limits.body))
    given = request.argument
    if "x" in body or str(body.get("id", given)) != given:
        raise RejectedError('a label is {"y": ...}; the id of its instance is in the path')
    bodies.clear_absent_label(body)
    bodies.check_label(body)
    return await _labelled(_model_of(app, request, given), {**body, "id": given})


def _model_of(app: App, request: Request, given: str) -> Model:
    """Return the model that keeps an instance under an id, made by the server or chosen by the client.

    Models that the token does not cover are not mentioned.
    """
    covers = request.grant.covers
    known = [model for model in app.models if covers(model.name) and model.state.knows(given)]
    if len(known) == 1:
        return known[0]
    if known:
        routes = ", ".join(f"/models/{model.state.name}/labels" for model in known[:_MOST_SHOWN])
        raise ConflictError(f"the id {given[:80]!r} was given in {len(known):,} models; name the model: {routes}")
    match = re.fullmatch(r"([A-Za-z0-9_-]{1,64})\.([0-9a-f]{6})\.([0-9]{1,15})", given)
    if match is None or match[1] not in app.models or not covers(match[1]):
        raise NotFoundError(f"no instance with the id {given[:80]!r} waits for a label")
    model = app.models[match[1]]
    if match[2] != model.state.incarnation:
        raise ExpiredError(f"the instance {given!r} belongs to a model that was deleted")
    return model


async def model_label(app: App, request: Request) -> Response:
    """Learn an instance that was kept under a client's id, with its label."""
    body = bodies.parse(await request.body(app.limits.body))
    if "x" in body or "id" not in body:
        raise RejectedError('a label is {"id": ..., "y": ...}')
    bodies.clear_absent_label(body)
    bodies.check_row(body)
    return await _labelled(app.models[request.argument], body)


async def _labelled(model: Model, body: dict[str, Any]) -> Response:
    body = {name: body[name] for name in ("id", "y", "w", "key") if name in body}
    await model.turn()
    return Response(encode(await model.submit(body, b"")))


async def batch(app: App, request: Request) -> None:
    """Apply rows and respond with a line for each; lines are sent as rows reach the disk."""
    model = app.models[request.argument]
    if model.stopped is not None:
        raise StoppedError(model.stopped)
    data = await request.body(app.limits.batch)
    await request.send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", NDJSON)]})
    try:
        async for lines in rows.apply_rows(model, data):
            await request.send({"type": "http.response.body", "body": lines, "more_body": True})
    except RequestError as error:  # the disk failed in the meantime
        line = encode({"error": str(error), "status": error.status}) + b"\n"
        await request.send({"type": "http.response.body", "body": line, "more_body": True})
    await request.send({"type": "http.response.body", "body": b""})


# ---------------------------------------------------------------------- making and looking


def summary(model: Model) -> dict[str, Any]:
    """Summarise a model."""
    state = model.state
    learner = state.learner
    inner = learner.model if isinstance(learner, KeyedLearner) else learner
    return {
        "name": state.name,
        "method": inner._header()["method"],
        "key": learner.key if isinstance(learner, KeyedLearner) else None,
        "max_keys": learner.max_keys if isinstance(learner, KeyedLearner) else None,
        "steps": learner.steps,
        "seq": state.seq,
        "waiting": len(state.waiting),
        "stopped": model.stopped,
    }


async def list_models(app: App, request: Request) -> Response:
    """List all models, and why some could not be recovered."""
    covers = request.grant.covers
    summaries = [summary(model) for model in app.models if covers(model.name)]
    unrecovered = {name: reason for name, reason in app.models.unrecovered.items() if covers(name)}
    response = json_response({"models": summaries, "unrecovered": unrecovered})
    await app.models.committer.drain_group()  # only show what is on disk
    return response


async def show(app: App, request: Request) -> Response:
    """Show a model with its parameters, labels and use of memory."""
    model = app.models[request.argument]
    learner = model.state.learner
    response = json_response(
        {
            **summary(model),
            "params": learner._header()["params"],
            "task": learner._task,
            "labels": getattr(learner, "classes", []),
            "input": model.state.rules.to_json(),
            "ask": model.state.rules.ask,
            "bytes": model.state.budget.used,
        }
    )
    await app.models.committer.drain_group()  # only show what is on disk
    return response


async def digest(app: App, request: Request) -> Response:
    """Show the digest of a model's state."""
    model = app.models[request.argument]
    with _one_of_the_files(app):
        seq, found = await model.digest()
    return json_response({"seq": seq, "digest": found})


async def create(app: App, request: Request) -> Response:
    """Make a new model; `input` alone replaces the input rules of one that exists."""
    data = await request.body(app.limits.body)
    description = bodies.parse(data) if data.strip() else {}
    if description.keys() == {"input"} and request.argument in app.models:
        model = app.models[request.argument]
        return Response(encode(await model.change_rules(description["input"])))
    spec = ModelDescription.from_json(description)
    model = await app.models.create(request.argument, spec.method, spec.params, spec.key, spec.rules, spec.max_keys)
    return json_response(summary(model), 201)


async def delete(app: App, request: Request) -> Response:
    """Remove a model permanently."""
    await app.models.delete(request.argument)
    app.reports.forget(request.argument)
    return json_response({"deleted": request.argument})


async def explain(app: App, request: Request) -> Response:
    """Explain what each feature adds to a prediction; without an instance, to the last one made."""
    data = await request.body(app.limits.body)
    body = bodies.parse(data) if data.strip() else {}
    state = app.models[request.argument].state
    wanted = body.pop("label", None)
    if "x" not in body:
        if state.last is None:
            raise NotFoundError("no instance has been predicted since the start; send one as x")
        body = {"x": state.last}
    else:
        state.rules.apply(body)
    bodies.check_instance(body)
    x = state.features_of(body)
    if not hasattr(state.learner, "explain_one"):
        raise RejectedError(f"a learner of the class {type(state.learner).__name__} has no explanations")
    if wanted is not None and (state.detects or is_regressor(state.learner)):
        kind = "detector" if state.detects else "regressor"
        raise RejectedError(f"the model is a {kind}, which has no labels: leave label out")
    result = state.predicted(x)
    try:
        parts = state.learner.explain_one(x, *([] if wanted is None else [wanted]))
    except VarifoldError as error:
        raise RejectedError(str(error)) from error
    return json_response({**result, "x": x, "contributions": parts, "seq": state.seq})


async def features(app: App, request: Request) -> Response:
    """List the features that the learner saw last, and which of those watched are here, silent, new or gone."""
    state = app.models[request.argument].state
    most = _limit(request, "limit", _FEATURES, _MOST_FEATURES)
    learner: Any = state.learner
    if isinstance(learner, KeyedLearner):
        learner = _learner_of_key(state, request)
    known = learner._latest_features(most) if hasattr(learner, "_latest_features") else {}  # a Vote has none
    presence = {row["name"]: row["presence"] for row in state.monitor.features()}
    rows = {
        str(name): {
            "first_seen": f.first_seen,
            "last_seen": f.last_seen,
            "count": f.count,
            "weight": f.weight,
            "presence": presence.get(str(name)),
        }
        for name, f in known.items()
    }
    return json_response({"features": rows, "presence": presence})


async def report(app: App, request: Request) -> Response:
    """Report the stream and error of a model, or of one device: the data of the dashboard."""
    model = app.models[request.argument]
    if request.query("key") is None:
        return json_response(app.reports.of(model))
    key, device = _device(model, request)
    model.state.budget.load(model.state.learner, key)
    devices, learner = model.state.devices, model.state.learner.learner(key)
    found = {
        **devices.describe(key, device),
        "name": model.name,
        "steps": 0 if learner is None else learner.steps,
        "features": devices.sensors(device),
        "events": [e for e in app.models.events.latest if e["model"] == model.name and key in e.get("keys", ())],
    }
    return json_response(found)


async def ask(app: App, request: Request) -> Response:
    """List the waiting instances whose labels were requested, those worth most first."""
    state = app.models[request.argument].state
    rows = state.worth_asking(_limit(request, "most", 20, _MOST_LISTED))
    response = json_response(
        {"instances": rows, "labels": getattr(state.learner, "classes", []), **reports.asking(state)}
    )
    await app.models.committer.drain_group()  # only show what is on disk
    return response


def _limit(request: Request, name: str, default: int, most: int) -> int:
    given = request.query(name) or str(default)
    if not re.fullmatch("[0-9]{1,9}", given) or not 1 <= int(given) <= most:
        raise RejectedError(f"{name} is {given[:20]!r}; give a number from 1 to {most:,}")
    return int(given)


async def devices(app: App, request: Request) -> Response:
    """List the devices of a model with learners by key, those in trouble first."""
    model = app.models[request.argument]
    if not isinstance(model.state.learner, KeyedLearner):
        raise RejectedError(f"the model {model.name!r} has no learners by key; make one with key")
    known = model.state.devices
    rows = known.worst(_limit(request, "limit", 100, _MOST_DEVICES), request.query("search") or "")
    return json_response({"counts": known.counts(), "devices": rows})


def _device(model: Model, request: Request) -> tuple[Key, Device]:
    """Return the device that a query names, and its key."""
    for key in _keys(request) if model.state.keyed else []:
        device = model.state.devices.get(key)
        if device is not None:
            return key, device
    raise NotFoundError(f"the model {model.name!r} knows no device {(request.query('key') or '')[:80]!r}")


def _learner_of_key(state: ModelState, request: Request) -> Any:
    """Return the learner of the key that a query names; None without one."""
    keys = _keys(request)
    for key in keys:
        state.budget.load(state.learner, key)
        learner = state.learner.learner(key)
        if learner is not None:
            return learner
    if keys:
        raise NotFoundError(f"the key {str(keys[0])[:80]!r} has not been learned")
    return None


def _keys(request: Request) -> list[Key]:
    """Return what the key of a query may be: the text, then, if there is no such key, the number that it is."""
    given = request.query("key")
    if given is None:
        return []
    return [given, int(given)] if re.fullmatch(r"-?[0-9]{1,20}", given) else [given]


async def file(app: App, request: Request) -> None:
    """Send the model file, as `learner.save` writes it."""
    started = time.perf_counter()
    model = app.models[request.argument]
    with _one_of_the_files(app):
        seq, data = await model.packed()
        name = f'attachment; filename="{model.name}-{seq}.varifold"'.encode()
        response = Response(data, kind=b"application/octet-stream", headers=[(b"content-disposition", name)])
        await response.send(request.send)
    app.metrics.count("file", response.status, time.perf_counter() - started)


@contextlib.contextmanager
def _one_of_the_files(app: App) -> Iterator[None]:
    """Reject a request if too many model files are being made or sent: each is in memory until the client has it."""
    if app.files >= _FILES:
        raise BusyError(f"{app.files} model files are being made or sent; try again later")
    app.files += 1
    try:
        yield
    finally:
        app.files -= 1


async def restore(app: App, request: Request) -> Response:
    """Replace the learner with the one in a model file; of a name that is new, make a model of the file."""
    name = request.argument
    if name in app.models:
        model = app.models[name]
        return Response(encode(await model.restore(await request.body(app.limits.file))))
    state = (await app.models.restore(name, await request.body(app.limits.file))).state
    return json_response({"seq": state.seq, "steps": state.learner.steps, "input": state.rules.to_json()}, 201)
