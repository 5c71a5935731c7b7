"""Learn, one instance at a time, from streams whose features appear and vanish.

>>> import varifold
>>> model = varifold.OLVF()
>>> model.learn_one({"pressure": 1.2, "valve": "open"}, "ok")
>>> model.predict_one({"pressure": 1.1})
'ok'
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "varifold does not support free-threaded Python (builds without the GIL): use the ordinary build of Python "
        f"{sys.version_info.major}.{sys.version_info.minor}"
    )

from varifold import errors
from varifold._version import __version__
from varifold.base import (
    Block,
    PythonRule,
    VaryingClassifier,
    VaryingDetector,
    VaryingRegressor,
    Vocabulary,
    detectors,
    models,
    to_block,
)
from varifold.base.nearest import nearest
from varifold.base.registry import transformers

_MODULES = (
    "anomaly",
    "ask",
    "auto",
    "bench",
    "checks",
    "copula",
    "datasets",
    "drift",
    "ensemble",
    "evaluate",
    "evolving",
    "forest",
    "linear",
    "mlflow",
    "monitor",
    "naive_bayes",
    "neighbours",
    "report",
    "serve",
    "sklearn",
    "spark",
    "streams",
    "variation",
)
_OTHERS = {
    "PerKey": "varifold.ensemble.per_key",
    "PerKeyDetector": "varifold.ensemble.per_key",
    "PerKeyRegressor": "varifold.ensemble.per_key",
    "Vote": "varifold.ensemble.vote",
    "VoteDetector": "varifold.ensemble.vote_detector",
    "from_bytes": "varifold.base.saving",
    "learn_parallel": "varifold.ensemble.parallel",
    "load": "varifold.base.saving",
    "merge": "varifold.ensemble.merging",
}
"""Modules of the public names that are not registered learners."""
__all__ = [
    "Block",
    "PythonRule",
    "VaryingClassifier",
    "VaryingDetector",
    "VaryingRegressor",
    "Vocabulary",
    "__version__",
    "detectors",
    "errors",
    "from_bytes",
    "learn_parallel",
    "load",
    "merge",
    "models",
    "to_block",
]


def __getattr__(name: str) -> Any:
    """Import classes and sub-packages on first use; `__init__.pyi` lists them for type checkers."""
    if name in _MODULES:
        return importlib.import_module(f"varifold.{name}")
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name]), name)
    for registry in (models, detectors, transformers):
        registered = registry.class_names().get(name)
        if registered is not None:
            return registry[registered]
    raise AttributeError(f"module 'varifold' has no attribute {name!r}{nearest(name, _lazy_names())}")


def _lazy_names() -> list[str]:
    return [*models.class_names(), *detectors.class_names(), *transformers.class_names(), *_OTHERS, *_MODULES]


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_names()})
