"""Learn one stream with several workers: each learns a share of the instances; the learners are merged or vote."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from varifold._engine.data.block import Block
from varifold.base.classifier import VaryingClassifier
from varifold.base.nested import make_learner
from varifold.base.params import Constraint, Integer, OneOf, validate
from varifold.base.shares import share_of
from varifold.ensemble.merging import merge
from varifold.ensemble.vote import Vote
from varifold.ensemble.workers import each
from varifold.errors import DataError, ParameterError, VarifoldError
from varifold.streams import read

__all__ = ["check_shards", "joined", "learn_parallel"]


def learn_parallel(
    source: Any,
    model: Any = "arow",
    shards: int = 8,
    *,
    join: str = "auto",
    jobs: int = -1,
    backend: str | None = None,
    **reading: Any,
) -> Any:
    """Learn one stream in several processes; a hash of an instance's number selects its learner.

    Learners do not see each other's instances; at the end they are merged, or they vote. This pays off if learning
    is expensive; a linear method learns faster than most files can be read. With 8 shards, each learner sees an eighth
    of the stream, so it is less accurate than one that sees all of it and needs eight times as many instances of the
    stream to notice a change.

    Parameters
    ----------
    source
        Paths of files, which every worker reads, or a Block or an iterable of Blocks, whose rows are sent to the
        workers.
    model
        A learner, which is cloned, or a specification, such as ``"arow:r=1"``.
    shards
        Number of learners.
    join
        ``"merge"`` (see `varifold.merge`), ``"vote"`` (`Vote`), or ``"auto"``: merge if the method can be merged.
    jobs
        Number of parallel workers; -1: one per core.
    backend
        A backend of joblib: ``"loky"`` (processes; the default), ``"threading"``, ``"dask"``, ``"ray"``.
    reading
        Options of `varifold.streams.read` for files, such as ``target="label"``.

    Examples
    --------
    >>> import varifold
    >>> X = [{"load": step % 2, "part": "abc"[step % 3]} for step in range(400)]
    >>> block = varifold.to_block(X, ["high" if x["load"] else "low" for x in X])
    >>> model = varifold.learn_parallel(block, "gaussiannb", shards=4, backend="threading")
    >>> model.steps, model.predict_one({"load": 1})
    (400, 'high')

    """
    check_shards(shards, join)
    tasks = _tasks(source, make_learner(model), shards, reading)
    workers = (os.cpu_count() or 1) if jobs < 0 else jobs
    learned = dict(each(_learned, tasks, min(workers, shards), backend, _died))
    return joined([_kept(learned[number]) for number in range(shards)], join)


def check_shards(shards: int, join: str) -> None:
    """Raise an error unless the parameters of `learn_parallel`, here or on Spark, can be used."""
    limits: dict[str, Constraint] = {"shards": Integer(1), "join": OneOf("auto", "merge", "vote")}
    validate("learn_parallel", limits, {"shards": shards, "join": join})


def joined(learners: Iterable[Any], how: str = "auto") -> Any:
    """Combine learners of parts of a stream: merge them, or let them vote if they cannot be merged."""
    parts = list(learners)
    if how == "vote" or (how == "auto" and parts[0].traits.merging is None):
        return Vote(parts)
    return merge(parts)


class _Task(NamedTuple):
    """Work of one worker: its share of the rows of files, or blocks that hold only its share."""

    number: int
    shards: int
    learner: VaryingClassifier
    paths: Any
    reading: dict[str, Any]
    blocks: list[Block]


def _tasks(source: Any, blank: VaryingClassifier, shards: int, reading: dict[str, Any]) -> Iterator[_Task]:
    if isinstance(source, Block):
        source = [source]
    if isinstance(source, str | os.PathLike) or (
        isinstance(source, list | tuple) and all(isinstance(path, str | os.PathLike) for path in source)
    ):
        return (_Task(number, shards, blank.clone(), source, reading, []) for number in range(shards))
    if reading:
        raise ParameterError(f"learn_parallel takes {next(iter(reading))!r} for files only; blocks are read already")
    shares: list[list[Block]] = [[] for _ in range(shards)]
    start = 0
    for block in source:
        if not isinstance(block, Block):
            raise DataError(
                f"learn_parallel takes paths or Blocks. Got a {type(block).__name__} instead; to_block() makes a Block"
            )
        for number in range(shards):
            shares[number].append(_share(block, start, number, shards))
        start += len(block)
    return (_Task(number, shards, blank.clone(), None, {}, shares[number]) for number in range(shards))


def _share(block: Block, start: int, number: int, shards: int) -> Block:
    """Select the rows of a block that go to a worker; `start` rows came before the block."""
    numbers = np.arange(start, start + len(block), dtype=np.uint64)
    return block.take(np.flatnonzero(share_of(numbers, shards) == number))


def _blocks(task: _Task) -> Iterator[Block]:
    if task.paths is None:
        yield from task.blocks
        return
    start = 0
    for block in read(task.paths, **task.reading).blocks():
        yield _share(block, start, task.number, task.shards)
        start += len(block)


def _learned(task: _Task) -> tuple[int, VaryingClassifier | VarifoldError]:
    try:
        for block in _blocks(task):
            task.learner.learn_many(block)
    except VarifoldError as error:
        return task.number, error
    return task.number, task.learner


def _died(task: _Task) -> tuple[int, VarifoldError]:
    return task.number, DataError(
        f"the process of shard {task.number} died twice (killed, or out of memory); use fewer jobs, or more shards"
    )


def _kept(found: VaryingClassifier | VarifoldError) -> VaryingClassifier:
    if isinstance(found, VarifoldError):
        raise found
    return found
