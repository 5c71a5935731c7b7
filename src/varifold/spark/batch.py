"""Learners on frames that do not stream: one per group, or one frame split over many workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from varifold.base import from_bytes
from varifold.base.classifier import VaryingClassifier
from varifold.base.nested import make_learner
from varifold.ensemble.parallel import JOINS, joined
from varifold.errors import ParameterError
from varifold.spark.keyed import PREDICTION, Answer, Keyed, instance_of, parsed
from varifold.spark.rows import LINE, Columns, Layout, spark_module

_GROUP = "key {key}, model binary, instances long, learned long, right long, accuracy double, problems long"


def learn_groups(
    df: Any,
    *,
    key: str,
    model: Any = "arow",
    numbers: Columns = None,
    words: Columns = None,
    label: str = "label",
    id: str | None = None,
    order: str | None = None,
    weight: str | None = None,
    wait: int = 100_000,
) -> Any:
    """Learn a frame with one learner per key; returns a frame with a row per key.

    Its columns: key, model (bytes for `varifold.from_bytes`), instances (predicted), learned, right (predictions that
    were right of those whose label came with the instance), accuracy (right over these) and problems (rows that could
    not be used). A learner sees the rows of its key in their order, one at a time, so that memory is that of one
    learner; parameters are those of `learn_stream`.
    """
    layout = Layout(key, numbers, words, label, id, order, weight)
    layout.check(df)
    blank = _blank(model, "learn_groups")
    by = [f"`{key}`", *([f"`{order}`"] if order else [])]
    lines = df.repartition(f"`{key}`").sortWithinPartitions(*by).select(layout.line(df).alias(LINE))
    schema = _GROUP.format(key=layout.type_of(df, "key").simpleString())

    def learn_frames(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas

        for found in _groups(frames, blank, wait):
            yield pandas.DataFrame([found])

    return lines.mapInPandas(learn_frames, schema)


def _groups(frames: Iterator[Any], blank: VaryingClassifier, wait: int) -> Iterator[dict[str, Any]]:
    """What each key's learner came to, keys being together."""
    group: _Group | None = None
    for frame in frames:
        for line in frame[LINE].tolist():
            row, features = parsed(line)
            if group is not None and group.key != row.get("k"):
                yield group.found()
                group = None
            if group is None:
                group = _Group(row.get("k"), Keyed(blank.clone(), wait))
            group.take(row, features)
    if group is not None:
        yield group.found()


class _Group:
    """One key's learner and how right it was."""

    def __init__(self, key: Any, keyed: Keyed) -> None:
        self.key = key
        self.keyed = keyed
        self.instances = self.judged = self.right = self.problems = 0
        self._answer: Any = None

    def take(self, row: dict[str, Any], features: str) -> None:
        before = self.instances
        self.keyed.take(row, features, self._tell)
        if self.instances > before and row.get("y") is not None:
            self.judged += 1
            self.right += self._answer == row["y"]

    def _tell(self, answer: Answer) -> None:
        if answer.kind == PREDICTION:
            self.instances += 1
            self._answer = answer.label
        else:
            self.problems += 1

    def found(self) -> dict[str, Any]:
        learner = self.keyed.learner
        return {
            "key": self.key,
            "model": learner.to_bytes(),
            "instances": self.instances,
            "learned": learner.steps,
            "right": self.right,
            "accuracy": self.right / self.judged if self.judged else None,
            "problems": self.problems,
        }


def learn_parallel(
    df: Any,
    model: Any = "arow",
    shards: int = 8,
    *,
    numbers: Columns = None,
    words: Columns = None,
    label: str = "label",
    order: str | None = None,
    weight: str | None = None,
    join: str = "auto",
) -> Any:
    """Learn a frame with `shards` learners on as many workers; returns one learner: them merged, or their vote.

    As `varifold.learn_parallel`, on Spark: which learner gets a row is a hash of the row. With `order`, each learner
    sees its rows in that order. Rows without a label are left out, and a row that cannot be learned is an error.
    """
    if not (isinstance(shards, int) and not isinstance(shards, bool) and shards >= 1):
        raise ParameterError(f"The 'shards' parameter of learn_parallel must be an int >= 1. Got {shards!r} instead.")
    if join not in JOINS:
        raise ParameterError(f"The 'join' parameter of learn_parallel must be one of {JOINS}. Got {join!r} instead.")
    layout = Layout(None, numbers, words, label, None, order, weight)
    layout.check(df)
    blank = _blank(model, "learn_parallel")
    functions = spark_module("sql.functions")
    columns = [layout.line(df).alias(LINE), *([functions.col(f"`{order}`").alias("place")] if order else [])]
    text = df.where(functions.col(f"`{label}`").isNotNull()).select(*columns)
    shard = functions.expr(f"cast(pmod(xxhash64({LINE}), {shards}) as int)")
    order_of = ["place"] if order else []
    placed = text.withColumn("shard", shard).repartition(shards, "shard").sortWithinPartitions("shard", *order_of)

    def learn_frames(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas

        learners: dict[int, VaryingClassifier] = {}
        for frame in frames:
            for number, line in zip(frame["shard"].tolist(), frame[LINE].tolist(), strict=True):
                _learn_line(learners.setdefault(number, blank.clone()), line)
        for number, learner in learners.items():
            yield pandas.DataFrame({"shard": [number], "model": [learner.to_bytes()]})

    rows = placed.mapInPandas(learn_frames, "shard int, model binary").collect()
    found = {row["shard"]: bytes(row["model"]) for row in rows}
    return joined([from_bytes(found[number]) for number in sorted(found)] or [blank], join)


def _learn_line(learner: VaryingClassifier, line: str) -> None:
    row, features = parsed(line)
    if features != "\t":
        learner._engine.learn_one(instance_of(features), row["y"], row.get("w", 1.0))


def _blank(model: Any, owner: str) -> VaryingClassifier:
    blank = make_learner(model)
    if not isinstance(blank, VaryingClassifier):
        raise ParameterError(f"{owner} takes a classifier of this library. Got a {type(blank).__name__} instead.")
    blank.to_bytes()  # refuses what cannot be kept as bytes
    return blank
