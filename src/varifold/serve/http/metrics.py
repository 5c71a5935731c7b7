"""Metrics of requests and models, in Prometheus' text format."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from varifold.serve.extra import prometheus_client

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from varifold.serve.core.models import Model
    from varifold.serve.http.app import App

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def _family(kind: str, name: str, text: str, labels: list[str]) -> Any:
    """Return a metric with labels, without values yet."""
    return getattr(prometheus_client.metrics_core, f"{kind}MetricFamily")(name, text, labels=labels)


class Metrics:
    """Requests by route and status, with their durations; everything else is read from the models on request."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self._durations: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()
        self._app: App | None = None
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(self)
        prometheus_client.ProcessCollector(registry=self._registry)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[route, status] += 1
        self._sums[route] += seconds  # type: ignore[assignment]
        counts = self._durations.get(route)
        if counts is None:
            counts = self._durations[route] = [0] * (len(_BUCKETS) + 1)
        counts[bisect_left(_BUCKETS, seconds)] += 1

    def text(self, app: App) -> bytes:
        """Return all metrics as text."""
        self._app = app
        return prometheus_client.generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Return nothing in advance: the names are only known when metrics are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Collect the metrics; called by Prometheus' registry."""
        if self._app is None:
            return
        requests = _family("Counter", "varifold_requests", "Completed requests", labels=["route", "status"])
        for (route, status), n in sorted(self.requests.items()):
            requests.add_metric([route, str(status)], n)
        yield requests
        yield self._histogram()
        yield from _model_metrics(self._app)
        yield from _store_metrics(self._app)
        events = _family("Counter", "varifold_events", "Events and alerts", labels=["model", "kind"])
        for (model, kind), n in sorted(self._app.models.events.counts.items()):
            events.add_metric([model, kind], n)
        yield events

    def _histogram(self) -> Any:
        durations = _family("Histogram", "varifold_request_seconds", "Time from request to response", labels=["route"])
        for route, counts in sorted(self._durations.items()):
            total, buckets = 0, []
            for bound, n in zip([*map(str, _BUCKETS), "+Inf"], counts, strict=True):
                total += n
                buckets.append((bound, total))
            durations.add_metric([route], buckets, self._sums[route])
        return durations


def _last_pause(model: Model) -> float:
    return model.snapshot_pauses[-1] if model.snapshot_pauses else 0.0


def _pause_p99(model: Model) -> float:
    """Return the 99th percentile of the latest pauses; 0 before the first snapshot."""
    pauses = sorted(model.snapshot_pauses)
    return pauses[min(len(pauses) - 1, int(0.99 * len(pauses)))] if pauses else 0.0


def _estimated(model: Model) -> float:
    """Return the estimated error; NaN without a policy or before its first label."""
    return math.nan if model.state.asking is None else model.state.asking.estimate().error


_GAUGES: dict[str, tuple[str, Callable[[Model], float]]] = {
    "seq": ("Number of the last change", lambda m: m.state.seq),
    "steps": ("Instances learned", lambda m: m.state.learner.steps),
    "waiting": ("Instances that wait for a label", lambda m: len(m.state.waiting)),
    "expired": ("Instances dropped without a label", lambda m: m.state.waiting.expired),
    "bytes": ("Memory of the learner, at the most", lambda m: m.state.budget.used),
    "error_recent": ("Mean loss of about the last 50 labelled predictions", lambda m: m.state.monitor.error.recent),
    "error_usual": ("Mean loss of about the last 1,000", lambda m: m.state.monitor.error.usual),
    "requested": ("Labels requested by a policy", lambda m: 0 if m.state.asking is None else m.state.asking.asked),
    "error_estimated": ("Error estimated from requested labels that were drawn at random", _estimated),
    "label_rate": ("Labels per instance, recently", lambda m: m.state.monitor.label_rate),
    "snapshots": ("Snapshots since the start", lambda m: m.snapshots),
    "snapshot_pause_seconds": ("How long the last snapshot held up the model", _last_pause),
    "snapshot_pause_p99_seconds": ("The 99th percentile of that over 1,000 snapshots", _pause_p99),
    "stopped": (
        "1 when the model accepts no changes, or is not recovered",
        lambda m: float(m.stopped is not None),
    ),
}


def _store_metrics(app: App) -> Iterator[Metric]:
    for name, text, value in (
        ("commits", "Transactions since the start", app.models.committer.commits),
        ("bytes", "Size of the database", app.models.database.size),
        ("memory_bytes", "Memory of all learners, at the most", app.models.budget.used),
        ("memory_limit_bytes", "Budget of memory of all learners", app.models.budget.most),
    ):
        gauge = _family("Gauge", f"varifold_store_{name}", text, labels=[])
        gauge.add_metric([], value)
        yield gauge


def _model_metrics(app: App) -> Iterator[Metric]:
    models: list[Model] = list(app.models)
    for name, (text, value) in _GAUGES.items():
        gauge = _family("Gauge", f"varifold_model_{name}", text, labels=["model"])
        for model in models:
            gauge.add_metric([model.state.name], value(model))
        if name == "stopped":
            for unrecovered in app.models.unrecovered:
                gauge.add_metric([unrecovered], 1.0)
        yield gauge
    presence = _family("Gauge", "varifold_features", "Features by presence", labels=["model", "presence"])
    for model in models:
        monitor = model.state.monitor
        counts = Counter(monitor.presence(name) for name in monitor.names())
        for kind in ("here", "new", "silent", "gone"):
            presence.add_metric([model.state.name, kind], counts[kind])
    yield presence
    lag = _family("Gauge", "varifold_kafka_lag", "Messages not learned yet", labels=["model", "topic", "partition"])
    for (name, (topic, part)), n in sorted(app.models.lag.items()):
        lag.add_metric([name, topic, str(part)], n)
    yield lag
    devices = _family("Gauge", "varifold_devices", "Devices by status", labels=["model", "status"])
    for model in models:
        if len(model.state.devices):
            for status, n in model.state.devices.counts().items():
                devices.add_metric([model.state.name, status], n)
    yield devices
