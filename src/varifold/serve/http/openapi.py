"""Description of the API, in OpenAPI 3.1."""

from __future__ import annotations

import functools
from typing import Any

import varifold
from varifold.ask import POLICIES

_X = {
    "type": "object",
    "description": "Features by name; a missing key and null both mean absent.",
    "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
}
_Y = {"type": ["string", "number", "boolean"], "description": "Label."}
_KEY = {"type": ["string", "integer"], "description": "Key of the learner to use, for a model by key."}
_ID = {"type": ["string", "integer"], "maxLength": 200}
_SEQ = {"type": "integer", "description": "Number of the last change that the response includes."}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


_W = {"type": "number", "minimum": 0, "default": 1, "description": "Weight of the instance in learning."}
_INSTANCE = _object(
    ["x"],
    x=_X,
    keep={"type": "boolean", "default": False},
    y={"type": "null", "description": "With keep: the instance is also learned without a label now."},
    id=_ID | {"description": "With keep: the instance waits under this id, and the response repeats it."},
    key=_KEY,
)
_LABELLED = _object(
    ["x"],
    x=_X,
    y={
        "type": ["string", "number", "boolean", "null"],
        "description": "Label; null if it is not known. A detector needs none; its label is true for an anomaly.",
    },
    w=_W,
    id=_ID | {"description": "An id seen before is acknowledged, not learned twice."},
    key=_KEY,
    keep={"type": "boolean", "default": False, "description": "Of a detector: the label of the instance comes later."},
    predict={"type": "boolean", "default": False, "description": "Predict the instance before it is learned."},
)
_SCORES = {
    "score": {"type": "number", "description": "Of a detector: the larger, the more unusual."},
    "p_value": {"type": "number", "description": "Smallest rate of alarms at which the instance is one."},
    "anomaly": {"type": "boolean", "description": "Whether it is an alarm at the detector's rate."},
    "because": {"type": "object", "description": "Features that contribute most to the score of an anomaly."},
}
_PREDICTION = _object(
    ["seq"],
    id=_ID,
    label={"type": ["string", "number", "boolean", "null"]},
    probabilities={
        "type": ["object", "array"],
        "additionalProperties": {"type": "number"},
        "description": 'By label; pairs [label, probability] if two labels, such as 1 and "1", share a name.',
    },
    intervals={"type": "object", "description": "Bounds of a regressor, by coverage, if the model has coverages."},
    sets={"type": "object", "description": "Labels of a classifier, by coverage, if the model has coverages."},
    ask={"type": "boolean", "description": "With keep, of a model that requests labels: this one is worth its price."},
    seq=_SEQ,
    **_SCORES,
)
_DONE = _object(["seq"], seq=_SEQ, duplicate={"type": "boolean"}, **_SCORES)
_MADE = _object(
    [],
    method={"type": "string", "default": "auto"},
    params={"type": "object"},
    key={"type": ["string", "null"]},
    max_keys={"type": ["integer", "null"], "minimum": 1, "description": "Most learners by key; null keeps all."},
    input={"type": "object", "description": "Rules for reading records."},
    ask={
        "type": ["object", "null"],
        "description": "Request labels of kept instances within a budget.",
        "required": ["budget"],
        "properties": {
            "budget": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.05},
            "by": {"type": "string", "enum": list(POLICIES), "default": POLICIES[0]},
            "explore": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.2},
            "burst": {"type": "integer", "minimum": 1, "default": 8},
            "seed": {"type": "integer", "minimum": 0, "default": 0},
        },
    },
)
_ASKED = _object(
    ["instances", "labels", "budget", "decided", "requested", "estimate", "text"],
    instances={
        "type": "array",
        "items": _object(
            ["id", "x", "label", "worth"],
            id={"type": "string", "description": "Send the label to /labels/{id}."},
            name=_ID | {"description": "The id that the client chose, or null."},
            key=_KEY,
            x=_X,
            time={"type": "integer", "description": "When it was predicted, in milliseconds since 1970."},
            label={"type": ["string", "number", "boolean", "null"]},
            probabilities={"type": ["object", "array"]},
            worth={"type": "number"},
            drawn={
                "type": "boolean",
                "description": "Requested whatever its worth; the error is estimated from these.",
            },
        ),
    },
    labels={"type": "array", "description": "Labels known to the model."},
    budget={"type": "number"},
    decided={"type": "integer", "description": "Kept instances about which was decided."},
    requested={"type": "integer"},
    estimate={"type": "object", "description": "Error and calibration estimated from the labels drawn at random."},
    text={"type": "string", "description": "The estimate in words."},
)
_ERROR = _object(["error"], error={"type": "string"})
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_TEXTS = {
    "ndjson": "application/x-ndjson",
    "text": "text/plain",
    "events": "text/event-stream",
    "page": "text/html",
}
_ERRORS = {
    400: "not JSON",
    401: "no token, or an unknown one",
    403: "the token does not allow it",
    404: "unknown",
    413: "body too large",
    422: "a value is rejected; nothing changed",
    429: "too many changes wait for the disk; see Retry-After",
    503: "the server accepts no changes",
    507: "the change needs more memory than the budget allows; nothing changed",
}
# path, method, summary, body, response, status, further errors
_ROUTES: list[tuple[str, str, str, Any, Any, int, dict[int, str]]] = [
    ("/models", "get", "List the models", None, {"type": "object"}, 200, {}),
    (
        "/models/{model}",
        "put",
        "Make a model; input alone replaces the input rules of one that exists (200)",
        _MADE,
        {"type": "object"},
        201,
        {409: "exists already"},
    ),
    ("/models/{model}", "get", "Method, parameters, steps and memory of a model", None, {"type": "object"}, 200, {}),
    ("/models/{model}/digest", "get", "Digest of a model's state", None, {"type": "object"}, 200, {}),
    ("/models/{model}", "delete", "Remove a model permanently", None, {"type": "object"}, 200, {}),
    (
        "/models/{model}/predict",
        "post",
        "Predict an instance, and keep it for its label on request",
        _INSTANCE,
        _PREDICTION,
        200,
        {},
    ),
    (
        "/models/{model}/learn",
        "post",
        "Learn a labelled instance; with a detector, score an instance, then learn it",
        _LABELLED,
        _DONE,
        200,
        {},
    ),
    (
        "/models/{model}/labels",
        "post",
        "Label an instance kept under the client's id",
        _object(["id", "y"], id=_ID, y=_Y, w=_W, key=_KEY),
        _DONE,
        200,
        {409: "labelled already, or several keys have the id", 410: "expired"},
    ),
    (
        "/labels/{id}",
        "post",
        "Label a kept instance, by the id of its prediction",
        _object(["y"], y=_Y, w=_W, key=_KEY),
        _DONE,
        200,
        {409: "labelled already, or several models or keys have the id", 410: "expired"},
    ),
    ("/models/{model}/stream", "get", "A web socket: each message is a row of NDJSON", None, "ndjson", 101, {}),
    (
        "/models/{model}/batch",
        "post",
        "Rows of NDJSON: predict, learn or label; with a detector, score and learn",
        "ndjson",
        "ndjson",
        200,
        {},
    ),
    (
        "/models/{model}/explain",
        "post",
        "Explain what each feature adds to a prediction",
        _object([], x=_X, label=_Y),
        {"type": "object"},
        200,
        {},
    ),
    ("/models/{model}/features", "get", "List every known feature", None, {"type": "object"}, 200, {}),
    ("/models/{model}/report", "get", "Report a model, or one device (?key=)", None, {"type": "object"}, 200, {}),
    ("/models/{model}/ask", "get", "List instances whose labels are requested (?most=20)", None, _ASKED, 200, {}),
    ("/models/{model}/devices", "get", "List devices by trouble (?search=&limit=)", None, {"type": "object"}, 200, {}),
    ("/models/{model}/file", "get", "The model file", None, "file", 200, {}),
    (
        "/models/{model}/restore",
        "post",
        "Replace the learner by a model file; make a model of it under a new name (201)",
        "file",
        _DONE,
        200,
        {},
    ),
    ("/healthz", "get", "The process runs", None, {"type": "object"}, 200, {}),
    ("/readyz", "get", "Every model accepts changes", None, {"type": "object"}, 200, {}),
    ("/metrics", "get", "Prometheus metrics", None, "text", 200, {}),
    ("/events", "get", "Server-sent events", None, "events", 200, {}),
    ("/openapi.json", "get", "This description", None, {"type": "object"}, 200, {}),
    ("/", "get", "The dashboard", None, "page", 200, {}),
]


def _content(kind: Any) -> dict[str, Any]:
    if kind == "file":
        return _FILE
    if isinstance(kind, str):
        return {_TEXTS[kind]: {"schema": {"type": "string"}}}
    return {"application/json": {"schema": kind}}


@functools.cache
def document() -> dict[str, Any]:
    """Return the complete description."""
    paths: dict[str, Any] = {}
    for path, method, summary, body, response, status, errors in _ROUTES:
        responses: dict[str, Any] = {str(status): {"description": "done", "content": _content(response)}}
        for code, text in sorted({**_ERRORS, **errors}.items()):
            responses[str(code)] = {"description": text, "content": _content(_ERROR)}
        operation: dict[str, Any] = {"summary": summary, "responses": responses}
        if body is not None:
            operation["requestBody"] = {"required": True, "content": _content(body)}
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        if names:
            operation["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
            ]
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "varifold serve", "version": varifold.__version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }
