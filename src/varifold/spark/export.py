"""Learners out of a checkpoint, for use anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from varifold.base.classifier import VaryingClassifier
from varifold.base.nested import unpack_params
from varifold.base.registry import models
from varifold.errors import DataError
from varifold.perkey import from_bytes
from varifold.spark.bucket import Key, Plan, Reader, Token
from varifold.spark.rows import spark_module
from varifold.spark.stream import use_rocksdb


def models_of(
    checkpoint: str | os.PathLike[str], spark: Any = None, operator: int = 0
) -> Iterator[tuple[Key, VaryingClassifier]]:
    """Every key with its learner, as of the last micro-batch that a query of `learn_stream` has committed.

    Parameters
    ----------
    checkpoint
        The query's ``checkpointLocation``. The query may run meanwhile.
    spark
        The session; by default the active one.
    operator
        Number of the stateful operator in the query, when `learn_stream` is not its first.

    """
    session = spark or spark_module("sql").SparkSession.active()
    if not os.path.isdir(checkpoint) and "://" not in os.fspath(checkpoint):
        raise DataError(f"{os.fspath(checkpoint)} holds no checkpoint: give the checkpointLocation of a query")
    use_rocksdb(session)
    tokens = _state(session, checkpoint, operator, "token").collect()
    if not tokens:
        raise DataError(f"{os.fspath(checkpoint)} holds no learners yet")
    model, wait = tokens[0]["value"]["model"], tokens[0]["value"]["wait"]
    snapshots = _state(session, checkpoint, operator, "keys").selectExpr(
        "key.bucket as bucket", "user_map_key.key as device", "user_map_value.state as state"
    )
    log = _state(session, checkpoint, operator, "log").selectExpr(
        "key.bucket as bucket", "list_element.counter as counter", "list_element.lines as lines"
    )

    def export(key: Any, written: Any, logged: Any) -> Any:
        import pandas

        found = [(json.dumps(name), learner.to_bytes()) for name, learner in _learners(model, wait, written, logged)]
        return pandas.DataFrame(found, columns=["device", "model"])

    pairs = (
        snapshots.groupBy("bucket").cogroup(log.groupBy("bucket")).applyInPandas(export, "device string, model binary")
    )
    return ((json.loads(row["device"]), from_bytes(bytes(row["model"]))) for row in pairs.toLocalIterator())


def _state(session: Any, checkpoint: str | os.PathLike[str], operator: int, variable: str) -> Any:
    reader = session.read.format("statestore").option("operatorId", operator).option("stateVarName", variable)
    return reader.load(os.fspath(checkpoint))


def _learners(model: str, wait: int, written: Any, logged: Any) -> Iterator[tuple[Key, VaryingClassifier]]:
    """The learners of one bucket, from its snapshots and its log."""
    header = json.loads(model)
    blank = models[header["method"]](**unpack_params(header["params"]))
    snapshots = {json.loads(key): bytes(data) for key, data in zip(written["device"], written["state"], strict=True)}
    lines = [text for _, text in sorted(zip(logged["counter"], logged["lines"], strict=True))]
    plan = Plan(blank, wait, buckets=1, logged=1, live=1)
    return Reader(plan, _Exported(Token(1, b"", 1, wait, model), lines, snapshots)).learners(snapshots)


class _Exported:
    """A bucket's state as it was read, which nobody writes."""

    def __init__(self, token: Token, lines: list[str], snapshots: dict[Key, bytes]) -> None:
        self._token = token
        self._lines = lines
        self._snapshots = snapshots

    def token(self) -> Token:
        return self._token

    def log(self) -> Iterator[str]:
        return iter(self._lines)

    def snapshot(self, key: Key) -> bytes | None:
        return self._snapshots.get(key)
