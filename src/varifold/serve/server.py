"""Server process: recover, listen, and shut down cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import ipaddress
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import varifold
from varifold.base.plural import plural
from varifold.errors import ParameterError, VarifoldError
from varifold.serve.alerts import AlertRules, Alerts
from varifold.serve.core import log
from varifold.serve.core.budget import ServerBudget, shown
from varifold.serve.core.models import ModelDescription, Models, Policy
from varifold.serve.core.state import Limits
from varifold.serve.extra import uvicorn, uvloop
from varifold.serve.http.app import App, BodyLimits
from varifold.serve.http.protocol import Certificate, accept_tls, most_connections, protocol_of, watch
from varifold.serve.http.tokens import Tokens
from varifold.serve.kafka import KafkaBridge, KafkaTopics
from varifold.serve.mqtt import MqttBridge, Topics
from varifold.serve.notify import keep_alive, notify

if TYPE_CHECKING:
    from uvicorn import Server as UvicornServer
else:
    try:
        from uvicorn import Server as UvicornServer
    except ImportError:  # `serve` reports the missing extra
        UvicornServer = object

_BACKLOG = 2_048
_SWITCH_SECONDS = 0.001
"""Short, because the thread that writes transactions needs the interpreter lock a few times for each."""


@dataclass(frozen=True)
class Settings:
    """Settings of `varifold serve`."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8080
    token_file: Path | None = None
    policy: Policy = field(default_factory=Policy)
    limits: Limits = field(default_factory=Limits)
    bodies: BodyLimits = field(default_factory=BodyLimits)
    alerts: AlertRules = field(default_factory=AlertRules)
    topics: Topics | None = None
    kafka: KafkaTopics | None = None
    memory: int | None = None
    """Most bytes of all learners; None: three quarters of the machine's or container's memory."""
    model_memory: int | None = None
    """Most bytes of one model's learner; None: as much as of all."""
    tls: tuple[Path, Path] | None = None
    """Files of the certificate and its key; None: HTTP."""
    models: Mapping[str, ModelDescription] = field(default_factory=dict)
    """Models to make at the start, unless they exist."""
    log: str = "text"
    drain: int = 10
    """Seconds for requests in progress when the server stops."""
    connections: int | None = None
    """Most connections; None: as many as the file descriptors allow."""

    @property
    def local(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def serve(settings: Settings) -> int:
    """Run until stopped; return exit code 1 if a failure forced the stop."""
    if not settings.local and settings.token_file is None:
        raise ParameterError(f"--host {settings.host} lets other machines in: give --token-file as well")
    tokens = None if settings.token_file is None else Tokens(settings.token_file)
    certificate = None if settings.tls is None else _certificate(*settings.tls)
    log.configure(settings.log)
    sys.setswitchinterval(_SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_Process(settings, tokens, certificate).run())


def _certificate(cert: Path, key: Path) -> Certificate:
    try:
        return Certificate(cert, key)
    except OSError as error:
        raise ParameterError(
            f"--tls-cert {cert} and --tls-key {key} are no certificate in PEM and its key: {error}"
        ) from error


class _Process:
    """Models, their API, and background tasks."""

    def __init__(self, settings: Settings, tokens: Tokens | None, certificate: Certificate | None) -> None:
        self.settings = settings
        self.tokens = tokens
        self.certificate = certificate
        self.failed = False
        self.server: uvicorn.Server | None = None
        self.app: App | None = None

    async def run(self) -> int:
        """Recover, serve, stop."""
        with _bound(self.settings.host, self.settings.port) as listening:
            return await self._run(listening)

    async def _run(self, listening: socket.socket) -> int:
        settings = self.settings
        budget = ServerBudget(settings.memory, settings.model_memory)
        models = Models(settings.folder, settings.policy, settings.limits, self._fatal, budget)
        tempfile.tempdir = str(models.folder)  # spill files of learners by key go into the server's folder
        models.open()
        try:
            await self._make(models)
        except VarifoldError:
            await models.stop()
            raise
        app = App(models, self.tokens, settings.bodies, local_only=settings.local)
        most = most_connections(settings.connections)
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=protocol_of(app, most),
            ws="websockets-sansio",
            ws_max_size=settings.bodies.body + 1024,
            ws_per_message_deflate=False,
            lifespan="off",
            proxy_headers=False,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=settings.drain,
            server_header=False,
            date_header=False,
            backlog=_BACKLOG,
        )
        self.app, self.server = app, _Server(config, self, app, listening, most)
        _log_recovered(models)
        log.info(
            f"varifold {varifold.__version__} serves {plural(len(models), 'model')} of {models.folder}, "
            f"{shown(budget.used)} of {shown(budget.most)} in use"
        )
        _freeze_garbage()
        tasks = self._tasks(models)
        try:
            await self.server.serve()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await models.stop()
            log.info("stopped" if self.failed else "stopped: everything is stored")
        return int(self.failed or not self.server.started)

    async def _make(self, models: Models) -> None:
        """Make the models of the settings that do not exist."""
        for name, spec in self.settings.models.items():
            if name in models:
                log.info("exists; its method, parameters and key in the configuration are not used", name)
            try:
                await models.ensure(name, spec)
            except VarifoldError as error:
                raise ParameterError(f"[models.{name}] of the configuration: {error}") from error

    def reload(self) -> None:
        """Read the tokens and the certificate again, each of which stays as it was after an error."""
        if self.tokens is not None:
            with _stays(f"the list of tokens {self.tokens.path}"):
                log.info(f"{plural(self.tokens.reload(), 'token')} read again")
        if self.certificate is not None:
            with _stays(f"the certificate {self.certificate.cert}"):
                self.certificate.reload()
                log.info("the certificate is read again")

    def _tasks(self, models: Models) -> list[asyncio.Task[None]]:
        loop = asyncio.get_running_loop()
        assert self.server is not None
        tasks = [
            loop.create_task(Alerts(models, self.settings.alerts).run(), name="the check for alerts"),
            loop.create_task(keep_alive(), name="the watchdog"),
            loop.create_task(watch(self.server.server_state.connections), name="the watch over connections"),
        ]
        if self.settings.topics is not None:
            tasks.append(loop.create_task(MqttBridge(models, self.settings.topics).run(), name="the MQTT bridge"))
        if self.settings.kafka is not None:
            tasks.append(loop.create_task(KafkaBridge(models, self.settings.kafka).run(), name="the Kafka bridge"))
        for task in tasks:
            task.add_done_callback(self._ended)
        return tasks

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Stop the server if alerts or the bridge failed: continuing without them would hide it."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.failure(f"{task.get_name()} failed", error=error)
            self._fatal(f"{task.get_name()} failed ({error!r}); the server stops")

    def _fatal(self, reason: str) -> None:
        """Stop the server after a failure."""
        self.failed = True
        log.failure(reason)
        if self.server is not None and self.app is not None:
            self.app.stopping.set()
            self.server.should_exit = True


@contextlib.contextmanager
def _stays(what: str) -> Iterator[None]:
    """Log why something could not be read again."""
    try:
        yield
    except (OSError, VarifoldError) as error:
        log.failure(f"{what} could not be read again, and stays as it was: {error}")


def _freeze_garbage() -> None:
    """Exclude what exists before the first request from garbage collections, which would take 50 ms each."""
    gc.collect()
    gc.freeze()


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address; this runs first, and its error fits in one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ParameterError(
                f"port {port} of {host} is in use by another program; stop it, or give another with --port (0: any)"
            ) from error
        raise ParameterError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error


class _Server(UvicornServer):
    """Server of uvicorn that closes event streams when it is stopped, reports where it listens, and knows our TLS."""

    def __init__(
        self, config: uvicorn.Config, process: _Process, app: App, listening: socket.socket, most: int
    ) -> None:
        super().__init__(config)
        self._process = process
        self._app = app
        self._listening = listening
        self._most = most
        self._accepting: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Report the signal that stops the server, end open event streams, and stop as uvicorn does."""
        log.info(f"stopping: {signal.Signals(sig).name}")
        notify("STOPPING=1")
        self._app.stopping.set()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; uvicorn would raise the signal again before everything is stored."""
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sig, self.handle_exit, sig, None)
        loop.add_signal_handler(signal.SIGHUP, self._process.reload)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then print the address, which shows that requests are accepted."""
        listening, certificate = self._listening, self._process.certificate
        await super().startup([listening] if certificate is None else [])
        if certificate is not None:
            listening.setblocking(False)
            connections = self.server_state.connections
            coroutine = accept_tls(listening, self._protocol, certificate, connections, self._most)
            self._accepting = asyncio.get_running_loop().create_task(coroutine)
        if self.started:
            scheme, port = "http" if certificate is None else "https", listening.getsockname()[1]
            log.info(f"listening on {scheme}://{self.config.host}:{port}")
            notify("READY=1")

    def _protocol(self) -> Any:
        """Return the protocol of a new connection."""
        make: Any = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and finish the requests in progress."""
        if self._accepting is not None:
            self._accepting.cancel()
        await super().shutdown([self._listening])


def _log_recovered(models: Models) -> None:
    for name, error in models.damaged.items():
        shown = error if isinstance(error, VarifoldError) else repr(error)
        log.failure(f"the model {name!r} could not be recovered: {shown}", name)
    for model in models:
        recovery = model.recovery
        if recovery is None:
            continue
        if recovery.replayed:
            log.info(
                f"{plural(recovery.replayed, 'change')} replayed after the snapshot at {recovery.snapshot:,} in "
                f"{recovery.seconds:.1f} s",
                model.name,
            )
        for one in recovery.set_aside:
            log.warning(f"change {one.seq:,} could not be learned again and is set aside: {one.reason}", model.name)
