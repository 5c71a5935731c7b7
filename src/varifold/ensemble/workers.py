"""Run calls in parallel: with joblib's own backends, any that is registered with it, or a Dask or Ray cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from varifold.errors import MissingExtraError, ParameterError

__all__ = ["each"]

T = TypeVar("T")
R = TypeVar("R")

_IN_FLIGHT = 2
"""Calls dispatched per worker: one running, one queued."""

_ROUND = 8
"""Calls per worker and round, for a backend that returns results only after a complete round."""


def each(
    function: Callable[[T], R], items: Iterable[T], jobs: int, backend: str | None, died: Callable[[T], R]
) -> Iterator[R]:
    """Apply a function to each item in parallel; yield the results as they complete, in any order.

    `dask` uses the scheduler that Dask is configured with (`DASK_SCHEDULER_ADDRESS`), or one of this machine with
    `jobs` workers; `ray` the cluster at `RAY_ADDRESS`, or this machine. When a process of this machine dies (killed,
    out of memory, a crash), the items that it may have been running are retried one at a time; for an item that kills
    its process again, the result is `died(item)`, and the others continue.
    """
    joblib = _imported("joblib", "in a checkout of varifold: pip install '.[bench]'")
    broken = importlib.import_module("joblib.externals.loky.process_executor").BrokenProcessPool
    numbered = partial(_numbered, function)
    with ExitStack() as stack:
        if backend == "dask":
            stack.enter_context(_dask_client(jobs))
        elif backend == "ray":
            _imported("ray.util.joblib", "pip install ray").register_ray()
        try:
            config = stack.enter_context(joblib.parallel_config(backend=backend or "loky", n_jobs=jobs))
        except ValueError as error:
            raise ParameterError(f"--backend {backend}: {error}; dask and ray are known, too") from error
        left = dict(enumerate(items))
        while left:
            try:
                for number, result in _running(joblib, numbered, left, jobs, config["backend"]):
                    del left[number]
                    yield result
            except broken:
                for number in list(islice(left, _IN_FLIGHT * jobs)):
                    yield _alone(joblib, broken, function, left.pop(number), died)


def _running(
    joblib: Any, numbered: Callable[[int, T], tuple[int, R]], left: dict[int, T], jobs: int, backend: Any
) -> Iterator[tuple[int, R]]:
    calls: Iterator[Any] = ((numbered, pair, {}) for pair in list(left.items()))
    if backend.supports_return_generator:
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=_IN_FLIGHT * jobs)(calls)
        return
    while batch := list(islice(calls, _ROUND * jobs)):
        yield from joblib.Parallel(batch_size=1)(batch)


def _numbered(function: Callable[[T], R], number: int, item: T) -> tuple[int, R]:
    return number, function(item)


def _alone(joblib: Any, broken: type[Exception], function: Callable[[T], R], item: T, died: Callable[[T], R]) -> R:
    """Run one item alone in a process; n_jobs is 2 because a single job would run in, and could kill, this process."""
    try:
        results: list[R] = joblib.Parallel(n_jobs=2, backend="loky")([(function, (item,), {})])
    except broken:
        return died(item)
    return results[0]


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
