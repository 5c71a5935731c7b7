"""Where cells run: joblib's own backends, any that was registered with it, or a Dask or Ray cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any, TypeVar

from varifold.errors import MissingExtraError, ParameterError

__all__ = ["each"]

T = TypeVar("T")
R = TypeVar("R")

_ROUND = 8
"""Calls per worker and round, for a backend that can only hand back a round as a whole."""


def each(function: Callable[[T], R], items: Iterable[T], jobs: int, backend: str | None) -> Iterator[R]:
    """What a function makes of each item, as soon as it is there, in any order.

    `dask` uses the scheduler that Dask is configured with (`DASK_SCHEDULER_ADDRESS`), or one of this machine with
    `jobs` workers; `ray` the cluster at `RAY_ADDRESS`, or this machine.
    """
    joblib = _imported("joblib", "pip install 'varifold[bench]'")
    with ExitStack() as stack:
        if backend == "dask":
            stack.enter_context(_dask_client(jobs))
        elif backend == "ray":
            _imported("ray.util.joblib", "pip install ray").register_ray()
        try:
            config = stack.enter_context(joblib.parallel_config(backend=backend or "loky", n_jobs=jobs))
        except ValueError as error:
            raise ParameterError(f"--backend {backend}: {error}; dask and ray are known, too") from error
        calls: Iterator[Any] = ((function, (item,), {}) for item in items)
        if config["backend"].supports_return_generator:
            yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(calls)
        else:
            while batch := list(islice(calls, _ROUND * jobs)):
                yield from joblib.Parallel(batch_size=1)(batch)


def _dask_client(jobs: int) -> Any:
    distributed = _imported("distributed", "pip install 'dask[distributed]'")
    if importlib.import_module("dask").config.get("scheduler-address", None):
        return distributed.Client()
    return distributed.Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)


def _imported(module: str, remedy: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"--jobs and --backend need {module.partition('.')[0]}; install it with: {remedy}"
        ) from error
