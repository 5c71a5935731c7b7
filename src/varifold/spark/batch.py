"""`learn_groups` and `learn_parallel`: learn a frame with one learner per key, or with many workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from varifold.base import from_bytes
from varifold.base.classifier import VaryingClassifier
from varifold.base.nested import make_learner
from varifold.ensemble.parallel import check_shards, joined
from varifold.errors import ParameterError
from varifold.spark.keyed import PREDICTION, Detection, Keyed, Output
from varifold.spark.layout import LINE, Columns, Layout, Row, spark_module

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
    """Learn a frame with one learner per key; return a frame with a row per key.

    Its columns: key, model (bytes for `varifold.from_bytes`), instances (predicted), learned, right (correct
    predictions among those whose label came with the instance), accuracy (their share) and problems (rows that could
    not be used). A learner sees the rows of its key in their order, one at a time, so that only one learner is in
    memory. The parameters are those of `learn_stream`.
    """
    layout = Layout(key, numbers, words, label, id, order, weight)
    layout.check(df)
    blank = _blank(model, "learn_groups")
    by = [f"`{key}`", *([f"`{order}`"] if order else [])]
    lines = df.repartition(f"`{key}`").sortWithinPartitions(*by).select(layout.line(df).alias(LINE))
    schema = _GROUP.format(key=layout.type_of(df, "key").simpleString())

    def learn_frames(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas

        for group in _groups(frames, blank, wait):
            yield pandas.DataFrame([group.summary()])

    return lines.mapInPandas(learn_frames, schema)


def _groups(frames: Iterator[Any], blank: VaryingClassifier, wait: int) -> Iterator[_Group]:
    """Learn each key's rows; the input is sorted by key."""
    group: _Group | None = None
    for frame in frames:
        for row in map(Row.parse, frame[LINE].tolist()):
            if group is not None and group.key != row.key:
                yield group
                group = None
            if group is None:
                group = _Group(row.key, Keyed(blank.clone(), wait))
            group.process(row)
    if group is not None:
        yield group


class _Group:
    """One key's learner and the counts of its predictions."""

    def __init__(self, key: Any, keyed: Keyed) -> None:
        self.key = key
        self.keyed = keyed
        self.instances = self.judged = self.right = self.problems = 0
        self._predicted: Any = None

    def process(self, row: Row) -> None:
        before = self.instances
        self.keyed.process(row, self._count)
        if self.instances > before and row.label is not None:
            self.judged += 1
            self.right += self._predicted == row.label

    def _count(self, output: Output | Detection) -> None:
        if output.kind == PREDICTION:
            self.instances += 1
            self._predicted = getattr(output, "label", None)
        else:
            self.problems += 1

    def summary(self) -> dict[str, Any]:
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
    """Learn a frame with `shards` learners on as many workers; return one learner: the merged ones, or their vote.

    Like `varifold.learn_parallel`, on Spark: a hash of the row selects its learner. With `order`, each learner sees its
    rows in that order. Rows without a label are left out; a row that cannot be learned is an error.
    """
    check_shards(shards, join)
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
    learned = {row["shard"]: bytes(row["model"]) for row in rows}
    return joined([from_bytes(learned[number]) for number in sorted(learned)] or [blank], join)


def _learn_line(learner: VaryingClassifier, line: str) -> None:
    row = Row.parse(line)
    if row.x is not None:
        learner._engine.learn_one(row.x, row.label, 1.0 if row.weight is None else row.weight)


def _blank(model: Any, owner: str) -> VaryingClassifier:
    blank = make_learner(model)
    if not isinstance(blank, VaryingClassifier):
        raise ParameterError(f"{owner} needs a classifier of this library. Got a {type(blank).__name__} instead.")
    blank.to_bytes()  # raises an error for a learner that cannot be saved
    return blank
