"""Clients for models on a `varifold serve`, with the interface of local learners."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Hashable, Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from urllib.parse import quote

from river import base as river_base

from varifold.base.blocks import to_block
from varifold.base.coverages import Interval, coverage_key
from varifold.base.frames import checked_column
from varifold.base.registry import detectors, models
from varifold.errors import (
    DataError,
    FeatureNameError,
    FeatureValueError,
    LabelError,
    ParameterError,
    TargetError,
    UnknownNameError,
    VarifoldError,
    missing_extra,
)
from varifold.serve.core.bodies import is_no_label
from varifold.serve.core.input import InputRules

if TYPE_CHECKING:
    import httpx

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
_PATIENCE = 30.0
"""Seconds for which requests to an unreachable or busy server are retried; a restart takes a few."""
_ROWS = 2_000


class ServerError(VarifoldError, ConnectionError):
    """Raised when the server cannot be reached, denies access, or accepts no changes."""


class Kept(NamedTuple):
    """An instance that waits on the server for its label or target."""

    id: str
    label: Any
    """Prediction."""
    ask: bool
    """Whether the label is worth its price; False for a model that requests none."""


def _kept(prediction: Mapping[str, Any]) -> Kept:
    return Kept(prediction["id"], prediction["label"], prediction.get("ask", False))


def _headers(token: str | None) -> dict[str, str]:
    """Return the headers of all requests; a token that was read from a file may end with a line feed."""
    return {} if token is None else {"authorization": f"Bearer {token.strip()}"}


def _path(model: str) -> str:
    """Return the path of a model; one that no model can have as its name is not mistaken for another path."""
    return f"/models/{quote(model, safe='')}"


class _RemoteModel:
    """Base class of the remote classifier, regressor and detector: requests to one model."""

    _task: ClassVar[str]

    def __init__(
        self,
        url: str,
        model: str,
        *,
        method: str | None = None,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        max_keys: int | None = None,
        input: Mapping[str, Any] | None = None,
        ask: Mapping[str, Any] | None = None,
        token: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.url = url
        self.model = model
        self._path = _path(model)
        self.method = method
        self.params = params
        self.key = key
        self.max_keys = max_keys
        self.input = input
        self.ask = ask
        self.token = token
        self.timeout = timeout
        self._httpx = _httpx()
        self._http: httpx.Client = self._httpx.Client(base_url=url, headers=_headers(token), timeout=timeout)
        if method is not None:
            with ExitStack() as unless_made:
                unless_made.callback(self.close)
                body = _description(_of_task(method, self._task), params, key, max_keys, input, ask)
                existed = self._request("PUT", self._path, body, accepted=(409,)).status_code == 409
                info = self.info()
                _check_task(self.model, info, self._task)
                if existed:
                    _check_same(self.model, info, body)
                unless_made.pop_all()

    def _contributions(self, x: Mapping[Any, Any], **options: Any) -> dict[str, float]:
        """Return what each feature adds to a prediction, largest first."""
        contributions: dict[str, float] = self._post("explain", {"x": _features(x), **options})["contributions"]
        return contributions

    def _rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        for at in range(0, len(rows), _ROWS):
            content = b"\n".join(_json(row) for row in rows[at : at + _ROWS])
            text = self._request("POST", f"{self._path}/batch", content).text
            results.extend(_parsed(line) for line in text.splitlines())
        for i, result in enumerate(results):
            if "error" in result:
                raise DataError(f"instance {i}: {result['error']}")
        return results

    def _send_label(self, id: str, y: Any) -> None:
        body = {"id": id, "y": y}
        response = self._request("POST", f"{self._path}/labels", body, accepted=(409,), again=(409,))
        if response.status_code == 409:
            raise DataError(_reason(response))

    # ------------------------------------------------------------------ inspection

    def info(self) -> dict[str, Any]:
        """Return method, parameters, steps, labels and memory."""
        info: dict[str, Any] = self._request("GET", self._path).json()
        return info

    @property
    def steps(self) -> int:
        """Number of instances learned so far."""
        return int(self.info()["steps"])

    # ------------------------------------------------------------------ connection

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _post(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = self._request("POST", f"{self._path}/{what}", body).json()
        return response

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | bytes | None = None,
        accepted: tuple[int, ...] = (),
        again: tuple[int, ...] = (),
    ) -> httpx.Response:
        """Send a request; retry with increasing pauses while the server is unreachable or busy."""
        content = _json(body) if isinstance(body, dict) else body
        retries = _Retries(self.url, accepted, again)
        while True:
            try:
                response = retries.result(self._http.request(method, path, content=content))
            except self._httpx.TransportError as error:
                retries.failed(error)
            else:
                if response is not None:
                    return response
            time.sleep(retries.pause())


class _RemoteLearner(_RemoteModel):
    """Base class of the remote classifier and regressor."""

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one instance with its label or target; it is on the server's disk when this returns."""
        self._post("learn", {"x": _features(x), "y": _finite(y), "w": w, "id": uuid.uuid4().hex})

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict the label or number of an instance; None or 0 before anything was learned."""
        return self._post("predict", {"x": _features(x)})["label"]

    def _uncertain(self, what: str, x: Mapping[Any, Any], coverage: float) -> list[Any]:
        """Return the interval or set of one coverage from the server's response."""
        if isinstance(coverage, bool) or not isinstance(coverage, int | float) or not 0 < coverage < 1:
            raise ParameterError(f"coverage must be a number above 0 and below 1. Got {coverage!r} instead.")
        by_coverage: dict[str, list[Any]] = self._post("predict", {"x": _features(x)}).get(what, {})
        if (key := coverage_key(coverage)) not in by_coverage:
            raise ParameterError(
                f"the model {self.model!r} has no coverage {key}, only {', '.join(by_coverage) or 'none'}; make it "
                f"with params={{'coverages': [{key}]}}"
            )
        return by_coverage[key]

    def keep_one(self, x: Mapping[Any, Any]) -> Kept:
        """Predict an instance whose label or target arrives later."""
        return _kept(self._post("predict", {"x": _features(x), "keep": True, "id": uuid.uuid4().hex}))

    def label(self, id: str, y: Any) -> None:
        """Send the label or target of an instance that was kept."""
        self._send_label(id, _finite(y))

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Any, y: Iterable[Any]) -> None:
        """Learn instances in order, many per request: an iterable of dicts, a frame, a block, a matrix or an array.

        The columns of the last two are named "0", "1", ...
        """
        pairs = zip(_instances(X), checked_column(y), strict=True)
        self._rows([{"x": _features(x), "y": _finite(label), "id": uuid.uuid4().hex} for x, label in pairs])

    def predict_many(self, X: Any) -> list[Any]:
        """Predict each instance, as `predict_one` does."""
        return [result["label"] for result in self._rows([{"x": _features(x)} for x in _instances(X)])]


class _Retries:
    """Decides whether a request is sent again: while the server is unreachable or busy, for half a minute."""

    def __init__(self, url: str, accepted: tuple[int, ...], again: tuple[int, ...]) -> None:
        self._url = url
        self._accepted = accepted
        self._again = again
        self._until = math.inf
        self._pause = _FIRST_PAUSE
        self._repeated = False

    def result(self, response: httpx.Response) -> httpx.Response | None:
        """Return a response that is final; None if the request is to be sent again."""
        if self._repeated and response.status_code in self._again:
            response.status_code = 200  # the first attempt arrived, only its response was lost
        if response.status_code in (429, 503) and self._may_repeat():
            return None
        return _checked(response, self._accepted)

    def failed(self, error: Exception) -> None:
        """Note that the server could not be reached; raise an error if that was the last attempt."""
        from httpx import UnsupportedProtocol

        text = str(error) or type(error).__name__
        untrusted = "CERTIFICATE_VERIFY_FAILED" in text
        if untrusted or isinstance(error, UnsupportedProtocol) or not self._may_repeat():
            remedy = "; SSL_CERT_FILE names the certificates of a private authority" if untrusted else ""
            raise ServerError(f"{self._url} cannot be reached: {text}{remedy}") from error
        self._repeated = True

    def _may_repeat(self) -> bool:
        """Return whether less than half a minute has passed since the first failure."""
        now = time.monotonic()
        self._until = min(self._until, now + _PATIENCE)
        return now < self._until

    def pause(self) -> float:
        """Return the seconds to wait before the next attempt."""
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause


class AsyncRemoteModel:
    """A model on a server for asynchronous code: many requests at a time over a pool of connections.

    Retries and ids are those of `RemoteClassifier`. Use it as ``async with AsyncRemoteModel(url, "plant") as model``.

    Parameters
    ----------
    url, model, token
        Address of the server, name of the model and token, as in `RemoteClassifier`.
    connections
        Most connections at a time.
    timeout
        Seconds to wait for the response of one attempt.

    """

    def __init__(
        self, url: str, model: str, *, token: str | None = None, connections: int = 32, timeout: float = 30.0
    ) -> None:
        self.url = url
        self.model = model
        self._path = _path(model)
        self._httpx = _httpx()
        self._http: httpx.AsyncClient = self._httpx.AsyncClient(
            base_url=url,
            headers=_headers(token),
            timeout=self._httpx.Timeout(timeout, pool=None),  # requests may wait for a connection as long as they like
            limits=self._httpx.Limits(max_connections=connections),
        )

    async def make(
        self,
        method: str = "auto",
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        max_keys: int | None = None,
        input: Mapping[str, Any] | None = None,
        ask: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the model; raise an error if there is one of another method, key, max_keys, input or ask."""
        body = _description(method, params, key, max_keys, input, ask)
        if (await self._request("PUT", self._path, body, accepted=(409,))).status_code == 409:
            _check_same(self.model, await self.info(), body)

    async def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one instance with its label or target; it is on the server's disk when this returns."""
        await self._post("learn", {"x": _features(x), "y": _finite(y), "w": w, "id": uuid.uuid4().hex})

    async def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict the label or number of an instance; None or 0 before anything was learned."""
        return (await self._post("predict", {"x": _features(x)}))["label"]

    async def keep_one(self, x: Mapping[Any, Any]) -> Kept:
        """Predict an instance whose label or target arrives later."""
        return _kept(await self._post("predict", {"x": _features(x), "keep": True, "id": uuid.uuid4().hex}))

    async def requested(self, most: int = 20) -> list[dict[str, Any]]:
        """Return the waiting instances whose labels were requested, those worth most first."""
        listed: list[dict[str, Any]] = (await self._request("GET", f"{self._path}/ask?most={most}")).json()["instances"]
        return listed

    async def label(self, id: str, y: Any) -> None:
        """Send the label or target of an instance that was kept."""
        body = {"id": id, "y": _finite(y)}
        await self._request("POST", f"{self._path}/labels", body, again=(409,))

    async def info(self) -> dict[str, Any]:
        """Return method, parameters, steps and labels."""
        info: dict[str, Any] = (await self._request("GET", self._path)).json()
        return info

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _post(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = (await self._request("POST", f"{self._path}/{what}", body)).json()
        return response

    async def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        accepted: tuple[int, ...] = (),
        again: tuple[int, ...] = (),
    ) -> httpx.Response:
        content = None if body is None else _json(body)
        retries = _Retries(self.url, accepted, again)
        while True:
            try:
                response = retries.result(await self._http.request(method, path, content=content))
            except self._httpx.TransportError as error:
                retries.failed(error)
            else:
                if response is not None:
                    return response
            await asyncio.sleep(retries.pause())


class RemoteClassifier(_RemoteLearner, river_base.Classifier):  # type: ignore[misc]
    """A classifier on a server, used like a local one.

    When `learn_one` returns, the change is on the server's disk. If the connection breaks, the change is sent again
    with the same id, and the server learns it only once. Feature names are strings; labels are of types that JSON has.

    Parameters
    ----------
    url
        Address of the server, such as ``http://127.0.0.1:8080``.
    model
        Name of the model.
    method, params
        Method and parameters for creating the model if it does not exist; with None no model is created.
    key
        Field of an instance that holds its key, for one learner per key, as in `varifold.PerKey`.
    max_keys
        With key: most learners, see `varifold.PerKey`.
    input
        Rules for reading instances, such as ``{"time": "ts"}``.
    ask
        Parameters of the policy that requests labels of kept instances, such as ``{"budget": 0.05}``.
    token
        Token of the server, if it requires one.
    timeout
        Seconds to wait for the response of one attempt.

    """

    _task = "classification"
    _labels: Mapping[str, Any] = {}

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the probability of each label; empty before any label was learned."""
        probabilities = self._post("predict", {"x": _features(x)}).get("probabilities", {})
        if isinstance(probabilities, list):
            return dict(probabilities)
        if not probabilities.keys() <= self._labels.keys():
            self._labels = {_key(label): label for label in self.classes}
        return {self._labels.get(text, text): p for text, p in probabilities.items()}

    def requested(self, most: int = 20) -> list[dict[str, Any]]:
        """Return the waiting instances whose labels were requested, those worth most first: id, x, label and more."""
        listed: list[dict[str, Any]] = self._request("GET", f"{self._path}/ask?most={most}").json()["instances"]
        return listed

    def predict_set_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> set[Any]:
        """Predict the set of labels for a coverage that the model was made with."""
        return set(self._uncertain("sets", x, coverage))

    def explain_one(self, x: Mapping[Any, Any], label: Hashable = None) -> dict[str, float]:
        """Return what each present feature adds to a label's score, largest first."""
        return self._contributions(x, **({} if label is None else {"label": label}))

    @property
    def classes(self) -> list[Any]:
        """Labels in order of first occurrence."""
        return list(self.info()["labels"])

    @property
    def _multiclass(self) -> bool:
        return True


class RemoteRegressor(_RemoteLearner, river_base.Regressor):
    """A regressor on a server, used like a local one.

    When `learn_one` returns, the change is on the server's disk. If the connection breaks, the change is sent again
    with the same id, and the server learns it only once. Feature names are strings.

    Parameters
    ----------
    url, model, method, params, key, max_keys, input, token, timeout
        See `RemoteClassifier`; a key makes one regressor per key, as in `varifold.PerKeyRegressor`.
    ask
        For classifiers only.

    """

    _task = "regression"

    def predict_interval_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> Interval:
        """Predict an interval for a coverage that the model was made with; bounds are infinite until it is known."""
        low, high = self._uncertain("intervals", x, coverage)
        return Interval(-math.inf if low is None else low, math.inf if high is None else high)

    def explain_one(self, x: Mapping[Any, Any]) -> dict[str, float]:
        """Return what each feature adds to the prediction, largest first; the parts sum to it."""
        return self._contributions(x)


class RemoteDetector(_RemoteModel, river_base.AnomalyDetector):
    """An anomaly detector on a server, used like a local one.

    When `learn_one` returns, the instance is on the server's disk. If the connection breaks, it is sent again with the
    same id, and the server learns it only once. Feature names are strings.

    Parameters
    ----------
    url, model, method, params, key, max_keys, input, token, timeout
        See `RemoteClassifier`; a key makes one detector per key, as in `varifold.PerKeyDetector`.
    ask
        For classifiers only.

    """

    _task = "detection"

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn one instance; it is on the server's disk when this returns."""
        self.detect_one(x)

    def detect_one(self, x: Mapping[Any, Any]) -> dict[str, Any]:
        """Score an instance, then learn it; return score, p_value, anomaly and, of an anomaly, because."""
        return self._post("learn", {"x": _features(x), "id": uuid.uuid4().hex})

    def keep_one(self, x: Mapping[Any, Any]) -> dict[str, Any]:
        """Score and learn an instance whose label arrives later; what `detect_one` returns has its id."""
        return self._post("learn", {"x": _features(x), "keep": True, "id": uuid.uuid4().hex})

    def label(self, id: str, anomaly: bool) -> None:
        """Send whether an instance that was kept is an anomaly: see `AutoDetector.label_one`."""
        self._send_label(id, bool(anomaly))

    def detect_many(self, X: Any) -> list[dict[str, Any]]:
        """Score and learn instances in order, many per request; return what `detect_one` returns for each."""
        return self._rows([{"x": _features(x), "id": uuid.uuid4().hex} for x in _instances(X)])

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return how unusual an instance is: the larger, the more. Changes nothing."""
        return float(self._post("predict", {"x": _features(x)})["score"])

    def p_value_one(self, x: Mapping[Any, Any]) -> float:
        """Return the smallest rate of alarms at which the instance is one. Changes nothing."""
        return float(self._post("predict", {"x": _features(x)})["p_value"])

    def is_anomaly_one(self, x: Mapping[Any, Any], rate: float | None = None) -> bool:
        """Return whether the instance is an alarm, at the model's rate or this one. Changes nothing."""
        found = self._post("predict", {"x": _features(x)})
        return bool(found["anomaly"] if rate is None else found["p_value"] <= rate)

    def explain_one(self, x: Mapping[Any, Any]) -> dict[str, float]:
        """Return what each feature adds to the score, largest first; the parts sum to it."""
        return self._contributions(x)


def _description(
    method: str,
    params: Mapping[str, Any] | None,
    key: str | None,
    max_keys: int | None,
    input: Mapping[str, Any] | None,
    ask: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the body of the request that makes a model."""
    body: dict[str, Any] = {"method": method, "params": dict(params or {}), "key": key}
    if max_keys is not None:
        body["max_keys"] = max_keys
    more = {"input": input, "ask": ask}
    return body | {name: dict(options) for name, options in more.items() if options is not None}


def _check_task(model: str, info: Mapping[str, Any], task: str) -> None:
    """Raise an error if a model is for another task than the client."""
    if info["task"] != task:
        raise ParameterError(
            f"the model {model!r} exists, and its method {info['method']} is for {info['task']}; this client is for "
            f"{task}"
        )


def _check_same(model: str, info: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """Raise an error if a model that existed before differs from the description of the one to make.

    Input rules are compared as the server shows them. Without `max_keys`, `input` or `ask` those of the model are used.
    """
    sent = _parsed(_json(made).decode())
    rules, had = InputRules.of_model(sent), InputRules.of_model({"input": info["input"]})
    has = {name: info[name] for name in ("method", "key", "max_keys")} | {"input": _plain_rules(had), "ask": had.ask}
    wants = {"method": sent["method"], "key": sent["key"] or rules.key}
    wants |= {"max_keys": sent["max_keys"]} if "max_keys" in sent else {}
    wants |= {"input": _plain_rules(rules)} if "input" in sent else {}
    wants |= {"ask": rules.ask} if rules.ask is not None else {}
    for name, wanted in wants.items():
        if has[name] != wanted:
            raise ParameterError(
                f"the model {model!r} exists already, with the {name} {has[name]!r} and not {wanted!r}; use "
                f"{name}={has[name]!r}, or another name for the model"
            )


def _plain_rules(rules: InputRules) -> dict[str, Any]:
    """Return input rules as the server shows them, without the key and the policy, which are options of the model."""
    return {name: value for name, value in rules.to_json().items() if name not in ("key", "ask")}


def _checked(response: httpx.Response, accepted: tuple[int, ...]) -> httpx.Response:
    if response.is_success or response.status_code in accepted:
        if "json" not in response.headers.get("content-type", ""):
            raise ServerError(f"{response.url} did not respond with JSON; is it the address of a varifold server?")
        return response
    reason = _reason(response)
    if response.status_code == 404:
        raise UnknownNameError(reason)
    if response.status_code in (400, 409, 410, 413, 422):
        raise DataError(reason)
    raise ServerError(f"{response.status_code}: {reason}")


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]


def _of_task(method: str, task: str) -> str:
    """Return the method for a task: a classifier's name means its regressor; reject a method of the wrong task."""
    if (method in detectors) != (task == "detection") and (method in detectors or method in models):
        raise ParameterError(f"the method {method!r} is not for {task}, which this client is for")
    if method not in models:
        return method  # a detector, or unknown here: the server may have registered it, and reports an error if not
    is_regressor = issubclass(models[method], river_base.Regressor)
    if task == "regression" and not is_regressor and f"{method}regressor" in models:
        return f"{method}regressor"
    if is_regressor != (task == "regression"):
        raise ParameterError(f"the method {method!r} is not for {task}, which this client is for")
    return method


def _finite(y: Any) -> Any:
    """Return a label or target, None for NaN; reject infinity, and texts that the server takes for no label."""
    if isinstance(y, float) and math.isinf(y):
        raise TargetError(f"the label or target is {y!r}; pass a finite number, or None if it is not known")
    if is_no_label(y):
        raise LabelError(
            f"the label {y!r} means on the server, as in files, that there is none; rename it, or pass None"
        )
    return None if isinstance(y, float) and math.isnan(y) else y


def _instances(X: Any) -> Iterable[Mapping[Any, Any]]:
    """Return instances as dicts, whatever holds them; columns with numbers as names get them as strings."""
    holds_columns = any(hasattr(X, name) for name in ("shape", "column_names", "rows"))
    return map(_named, to_block(X).rows()) if holds_columns else X


def _named(x: Mapping[Any, Any]) -> dict[str, Any]:
    """Return an instance with strings as names."""
    named = {str(name): value for name, value in x.items()}
    if len(named) < len(x):
        raise FeatureNameError("two columns have the same name on the server, such as 1 and '1'; rename one of them")
    return named


def _features(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the instance as a dict; reject infinite values, which JSON would turn into absent ones."""
    features = dict(x)
    for name, value in features.items():
        if isinstance(value, float) and math.isinf(value):
            raise FeatureValueError(f'feature {name!r} is {value}; drop the key or pass None for "not observed"')
    return features


def _json(body: Any) -> bytes:
    import orjson

    try:
        return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise ParameterError(f"{error}: features are strings with numbers or strings, labels what JSON has") from error


def _parsed(text: str) -> dict[str, Any]:
    import orjson

    row: dict[str, Any] = orjson.loads(text)
    return row


def _key(label: Any) -> str:
    """Return a label as the server writes it where JSON requires a string."""
    return label if isinstance(label, str) else _json(label).decode()


def _httpx() -> Any:
    try:
        import httpx
        import orjson  # noqa: F401 - used by the first request; report a missing package now
    except ImportError as error:
        raise missing_extra(f"varifold.serve.client needs {error.name}", "serve") from error
    return httpx
