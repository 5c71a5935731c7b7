"""ASGI application: find the route, check the token, and turn every error into a response."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from varifold.errors import VarifoldError
from varifold.serve.core.errors import BusyError, ForbiddenError, NotFoundError, RequestError
from varifold.serve.core.group_commit import Acknowledgement
from varifold.serve.core.log import failure
from varifold.serve.core.models import Model, Models
from varifold.serve.http import model_routes, rows, server_routes
from varifold.serve.http.messages import Receive, Request, Response, Scope, Send, error_response
from varifold.serve.http.metrics import Metrics
from varifold.serve.http.tokens import EVERYTHING, NOTHING, READ, WRITE, Grant, Tokens
from varifold.serve.reports import Reports

Handler = Callable[["App", Request], Awaitable[Response | None]]
Start = Callable[[Model, bytes, Grant, Acknowledgement | None], Any]
_LOCAL = re.compile(rb"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")


class Route(NamedTuple):
    """A handler, the scope that its token needs, and whether a token for some models suffices."""

    name: str
    handler: Handler
    scope: int
    for_some: bool = True
    start: Start | None = None
    """What the handler does with a complete body, for requests that do not go through ASGI."""
    long: bool = False
    """Whether it may keep other requests waiting for long: all such requests use at most half of the time. It waits for
    nothing itself."""


@dataclass(frozen=True)
class BodyLimits:
    """Most bytes of a body, and of all bodies in progress; of all responses in progress as well."""

    body: int = 1 << 20
    batch: int = 64 << 20
    file: int = 256 << 20
    total: int = 1 << 30


_MODEL = {
    ("POST", "predict"): Route("predict", model_routes.predict, READ, start=model_routes.start_predict),
    ("POST", "learn"): Route("learn", model_routes.learn, WRITE, start=model_routes.start_learn),
    ("POST", "labels"): Route("labels", model_routes.model_label, WRITE),
    ("POST", "batch"): Route("batch", model_routes.batch, WRITE),
    ("POST", "explain"): Route("explain", model_routes.explain, READ),
    ("POST", "restore"): Route("restore", model_routes.restore, WRITE),
    ("GET", "features"): Route("features", model_routes.features, READ, long=True),
    ("GET", "ask"): Route("ask", model_routes.ask, READ),
    ("GET", "devices"): Route("devices", model_routes.devices, READ, long=True),
    ("GET", "report"): Route("report", model_routes.report, READ, long=True),
    ("GET", "file"): Route("file", model_routes.file, READ),
    ("GET", "digest"): Route("digest", model_routes.digest, READ),
    ("GET", ""): Route("model", model_routes.show, READ),
    ("PUT", ""): Route("create", model_routes.create, WRITE),
    ("DELETE", ""): Route("delete", model_routes.delete, WRITE),
}
_TOP = {
    ("GET", "models"): Route("models", model_routes.list_models, READ),
    ("GET", "healthz"): Route("healthz", server_routes.healthz, 0),
    ("GET", "readyz"): Route("readyz", server_routes.readyz, 0),
    ("GET", "metrics"): Route("metrics", server_routes.metrics, READ, for_some=False, long=True),
    ("GET", "events"): Route("events", server_routes.events, READ),
    ("GET", "openapi.json"): Route("openapi", server_routes.openapi, 0),
    **{("GET", name): Route("dashboard", server_routes.page, 0) for name in server_routes.PAGE},
}
_LABEL = {("POST", ""): Route("label", model_routes.label, WRITE)}
_DIRECT = {name.encode(): route for (_, name), route in _MODEL.items() if route.start is not None}


async def _no_handler(app: App, request: Request) -> None:
    """Handle nothing: web sockets are served apart."""


_STREAM = Route("stream", _no_handler, WRITE)


class MethodError(RequestError):
    """Raised when the path exists, but not with this method."""

    status = 405


def find(method: str, path: str) -> tuple[Route, str]:
    """Return the route of a request, and the model or id in its path."""
    if not path.startswith("/"):  # such as `OPTIONS *`
        raise NotFoundError("there is nothing at this path; /openapi.json lists what is")
    parts = path.split("/", 2) if path.startswith("/labels/") else path.split("/")  # an id may contain a slash
    argument = parts[2] if len(parts) > 2 else parts[1]
    if len(parts) in (3, 4) and parts[1] == "models":
        table, last = _MODEL, parts[3] if len(parts) == 4 else ""
    elif len(parts) == 3 and parts[1] == "labels":
        table, last = _LABEL, ""
    elif len(parts) == 2:
        table, last = _TOP, parts[1]
    else:
        raise NotFoundError("there is nothing at this path; /openapi.json lists what is")
    route = table.get((method, last))
    if route is not None:
        return route, argument
    allowed = [m for m, name in table if name == last]
    if allowed:
        raise MethodError(f"{method[:20]} is not for this path; use {' or '.join(allowed)}")
    raise NotFoundError("there is nothing at this path; /openapi.json lists what is")


@functools.lru_cache(256)
def _is_local(host: bytes) -> bool:
    """Return whether a host is a name of this machine."""
    return _LOCAL.fullmatch(host) is not None


def _no_token(given: bytes | None) -> Response:
    """Return the response to a request without a token, or with an unknown one."""
    if given is None or given[:7].lower() != b"bearer ":
        return error_response(ValueError("a token is needed: send `Authorization: Bearer TOKEN`"), 401)
    return error_response(ValueError("the server does not know this token; see its token file"), 401)


class App:
    """Application; there is one per process."""

    def __init__(self, models: Models, tokens: Tokens | None, limits: BodyLimits, *, local_only: bool = True) -> None:
        self.models = models
        self.tokens = tokens
        self.limits = limits
        self.local_only = local_only
        self.metrics = Metrics()
        self.reports = Reports()
        self.stopping = asyncio.Event()
        self.files = 0
        """Model files that are being made or sent."""
        self._receiving = 0
        """Bytes of the bodies in progress."""
        self._sending = 0
        """Bytes of the responses in progress."""
        self._turns = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection, as called by ASGI."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        name = "none"
        received = 0
        response: Response | None

        def reserve(size: int) -> None:
            nonlocal received
            received += size
            self._receiving += size
            if self._receiving > self.limits.total:
                raise BusyError(f"bodies of more than {self.limits.total:,} bytes are being received; send it later")

        try:
            route, argument = find(scope["method"], scope["path"])
            name = route.name
            request = Request(scope, receive, send, argument, reserve=reserve)
            model = argument if scope["path"].startswith("/models/") else None
            access = self.access(request.header, route, model)
            if isinstance(access, Response):
                response = access
            else:
                request.grant = access
                request.renewed = self._renewed(request.header, route, model)
                response = await (self._in_turn(route, request) if route.long else route.handler(self, request))
        except (VarifoldError, OSError) as error:
            response = self.error_of(name, error)
        finally:
            self._receiving -= received
        if response is None:
            return
        await self._send(response, send)
        self.metrics.count(name, response.status, time.perf_counter() - started)

    async def _in_turn(self, route: Route, request: Request) -> Response | None:
        """Handle a long request after the ones before it, and leave as much time as it took to others."""
        await self._turns.acquire()
        started = time.perf_counter()
        try:
            return await route.handler(self, request)
        finally:
            asyncio.get_running_loop().call_later(time.perf_counter() - started, self._turns.release)

    async def _send(self, response: Response, send: Send) -> None:
        """Send a response, unless clients that read slowly leave too much of others in memory."""
        size = len(response.body)
        if self._sending + size > self.limits.total:
            text = f"responses of more than {self.limits.total:,} bytes are being sent; try again later"
            response, size = error_response(BusyError(text), BusyError.status), 0
        self._sending += size
        try:
            await response.send(send)
        finally:
            self._sending -= size

    def direct(self, url: bytes) -> tuple[Route, str] | None:
        """Return route and model of a POST that needs no ASGI, unless the model shares the event loop by turns."""
        parts = url.split(b"/")
        if len(parts) != 4 or parts[1] != b"models" or (route := _DIRECT.get(parts[3])) is None:
            return None
        model = self.models.get(parts[2].decode("latin-1"))
        return None if model is None or model.takes_turns else (route, model.name)

    def error_of(self, name: str, error: Exception) -> Response | None:
        """Return the response to an error of a route; None for an error that no client can have caused."""
        if isinstance(error, RequestError):
            return error_response(error, error.status)
        if isinstance(error, VarifoldError):
            return error_response(error, 422)
        if isinstance(error, OSError):
            failure(f"{name}: {error!r}", error=error)
            return error_response(RuntimeError(f"the disk failed: {error.strerror}"), 503)
        return None

    def access(self, header: Callable[[bytes], bytes | None], route: Route, model: str | None) -> Grant | Response:
        """Return what the sender of a request about a model, or about none, may do, or why it is rejected."""
        if self.tokens is not None:
            given = header(b"authorization")
            grant = self.tokens.grant_of(given)
            if not route.scope:
                return grant
            if not grant.scope:
                return _no_token(given)
            if grant.scope < route.scope:
                return error_response(ForbiddenError("this token may read, not write"), 403)
            if grant.models is not None and not (route.for_some if model is None else grant.covers(model)):
                return error_response(ForbiddenError("this token is for other models"), 403)
            return grant
        if not self.local_only:
            return EVERYTHING
        host, origin = header(b"host") or b"", header(b"origin")
        if not _is_local(host) or (origin is not None and origin.partition(b"://")[2] != host):
            return error_response(ValueError("without a token the server accepts requests from this machine only"), 403)
        return EVERYTHING

    def _renewed(
        self, header: Callable[[bytes], bytes | None], route: Route, model: str | None
    ) -> Callable[[], Grant | None]:
        """Return a function that returns what the sender of a request may do by now, None for nothing.

        It looks again when the tokens were read again.
        """
        version, access = -1, NOTHING

        def grant() -> Grant | None:
            nonlocal version, access
            latest = 0 if self.tokens is None else self.tokens.version
            if latest != version:
                version, found = latest, self.access(header, route, model)
                access = NOTHING if isinstance(found, Response) else found
            return access if access.scope else None

        return grant

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        parts = scope["path"].split("/")
        found = len(parts) == 4 and (parts[1], parts[3]) == ("models", "stream")
        renewed = self._renewed(Request(scope, receive, send).header, _STREAM, parts[2] if found else None)
        allowed = renewed() is not None
        if not allowed or not found:
            await send(
                {"type": "websocket.close", "code": 1008, "reason": "no such path" if allowed else "not allowed"}
            )
            return
        try:
            model = self.models[parts[2]]
        except RequestError as error:
            reason = "no such model" if isinstance(error, NotFoundError) else "the model could not be recovered"
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
            return
        await rows.stream(model, receive, send, self.limits.body, lambda: renewed() is not None)
