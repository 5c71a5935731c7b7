"""Packages of the extras ``serve`` and ``kafka``: a missing one is reported at its first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from varifold.errors import missing_extra

__all__ = ["aiomqtt", "confluent_kafka", "httpx", "orjson", "prometheus_client", "uvicorn", "uvloop"]
_KAFKA = ("confluent_kafka",)


class _Missing:
    """Placeholder for a package that is not installed; its first use raises an error that names the extra."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise missing_extra(f"this needs {self._name}", "kafka" if self._name in _KAFKA else "serve")


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return _Missing(name)


if TYPE_CHECKING:
    import aiomqtt
    import confluent_kafka
    import httpx
    import orjson
    import prometheus_client
    import uvicorn
    import uvloop
else:
    aiomqtt, confluent_kafka, httpx, orjson, prometheus_client, uvicorn, uvloop = map(_optional, sorted(__all__))
