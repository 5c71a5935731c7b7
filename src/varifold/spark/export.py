"""`models_of`: the learners in a checkpoint, for use anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from varifold.base import from_bytes
from varifold.base.classifier import VaryingClassifier
from varifold.base.detector import VaryingDetector
from varifold.base.nested import unpack_params
from varifold.base.registry import detectors, models
from varifold.errors import DataError
from varifold.spark.bucket import Key, Plan, Reader, Token
from varifold.spark.layout import spark_module
from varifold.spark.stream import use_rocksdb

_EXPORTED = "device string, model binary"


def models_of(
    checkpoint: str | os.PathLike[str], spark: Any = None, operator: int = 0
) -> Iterator[tuple[Key, VaryingClassifier | VaryingDetector]]:
    """Yield every key with its learner, as of the last micro-batch that a query of `learn_stream` has committed.

    Parameters
    ----------
    checkpoint
        The query's ``checkpointLocation``. The query may be running.
    spark
        The session; by default the active one.
    operator
        Number of the stateful operator in the query, when `learn_stream` is not its first.

    """
    session = spark or spark_module("sql").SparkSession.active()
    if not os.path.isdir(checkpoint) and "://" not in os.fspath(checkpoint):
        raise DataError(f"{os.fspath(checkpoint)} is not a checkpoint: pass the checkpointLocation of a query")
    use_rocksdb(session)
    place = os.fspath(checkpoint)
    metadata = session.read.format("state-metadata").load(place)
    if metadata.where(f"operatorId = {int(operator)}").first() is None:
        raise DataError(f"{place} has no learners yet")
    pairs = _keys_and_models(session, place, operator)
    return ((json.loads(row["device"]), from_bytes(bytes(row["model"]))) for row in pairs.toLocalIterator())


def _keys_and_models(session: Any, place: str, operator: int) -> Any:
    """Read keys and models from token, log and snapshots."""
    tokens = _state(session, place, operator, "token").collect()
    if not tokens:
        raise DataError(f"{place} has no learners yet")
    model, wait = tokens[0]["value"]["model"], tokens[0]["value"]["wait"]
    snapshots = _state(session, place, operator, "keys").selectExpr(
        "key.bucket as bucket", "user_map_key.key as device", "user_map_value.state as state"
    )
    log = _state(session, place, operator, "log").selectExpr(
        "key.bucket as bucket", "list_element.counter as counter", "list_element.lines as lines"
    )

    def export(key: Any, written: Any, logged: Any) -> Any:
        states = zip(written["device"], written["state"], strict=True)
        snapshots = {json.loads(name): bytes(data) for name, data in states}
        lines = [text for _, text in sorted(zip(logged["counter"], logged["lines"], strict=True))]
        return _frame(CommittedState(Token(1, b"", 1, wait, model), lines, snapshots))

    return snapshots.groupBy("bucket").cogroup(log.groupBy("bucket")).applyInPandas(export, _EXPORTED)


def _state(session: Any, place: str, operator: int, variable: str) -> Any:
    reader = session.read.format("statestore").option("operatorId", operator)
    return reader.option("stateVarName", variable).load(place)


@dataclass
class CommittedState:
    """A bucket's state as it is in the checkpoint, to read."""

    committed: Token
    lines: list[str]
    snapshots: dict[Key, bytes]

    def token(self) -> Token:
        """Return the token."""
        return self.committed

    def log(self) -> Iterator[str]:
        """Yield the entries of the log, in order."""
        return iter(self.lines)

    def snapshot(self, key: Key) -> bytes | None:
        """Return the bytes written for a key."""
        return self.snapshots.get(key)


def _frame(state: CommittedState) -> Any:
    """Return the keys and models of one bucket, from its snapshots and its log."""
    import pandas

    token = state.committed
    header = json.loads(token.model)
    registry: Any = detectors if header["method"] in detectors else models
    blank = registry[header["method"]](**unpack_params(header["params"]))
    reader = Reader(Plan(blank, token.wait, 1, 1, 1), state)
    pairs = [(json.dumps(key), learner.to_bytes()) for key, learner in reader.learners(state.snapshots)]
    return pandas.DataFrame(pairs, columns=["device", "model"])
