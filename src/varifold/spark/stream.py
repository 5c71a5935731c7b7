"""One learner per key on a Spark stream, exactly once, whatever dies."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from varifold.base.classifier import VaryingClassifier
from varifold.base.nested import make_learner
from varifold.errors import ParameterError
from varifold.spark import row_state
from varifold.spark.bucket import Bucket, Key, Plan, Token
from varifold.spark.keyed import Answer
from varifold.spark.rows import BUCKET, LINE, Columns, Layout, spark_module

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
TRANSFORM, APPLY = "transformWithStateInPandas", "applyInPandasWithState"
_OUT = 10_000
"""Answers in a frame that goes out."""


def learn_stream(
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
    buckets: int = 64,
    logged: int = 16,
    live: int = 10_000,
    api: str | None = None,
) -> Any:
    """Predict and learn a stream with one learner per key; returns a stream of answers.

    Every row with features is predicted by the learner of its key and, if it has a label, learned after that. A row
    without features is the label of an earlier row with the same key and id. As long as the rows of each key arrive in
    order, no value depends on where micro-batches were cut or on what was killed and started again: all are those
    of one process that goes through the rows of the key. Learners are never dropped, however long their key is silent.

    The answers have the columns key, id, label, probabilities (by label), steps (learned before), kind and problem. Of
    the kind ``"prediction"`` there is one per instance. The kind ``"problem"`` says what was wrong with a row, which
    then changed nothing: a value that cannot be learned, a label whose id is not known. A row that came after one of
    a higher order is such a problem as well, but it is taken when it comes. ``writeStream.partitionBy("kind")`` writes
    problems to a folder of their own.

    Parameters
    ----------
    df
        A streaming frame.
    key
        Column of the key, a string or an int.
    model
        A learner, which is cloned for every key, or the spelling of one, such as ``"arow:r=1"``.
    numbers, words
        Columns of the features: the name of a map column (string to double, string to string), or a list of columns.
    label, id, order, weight
        Columns; a label is a string, a number or a bool, an order a number or a time.
    wait
        Most instances per key that wait for their label; the oldest leaves for a new one.
    buckets
        In how many groups keys are processed: a few per core, and more the more keys there are (about a thousand keys
        each). A checkpoint keeps its number.
    logged
        After how many rows per key, on average, learners are written to the state; until then the rows themselves
        are kept there.
    live
        Most learners that a Python worker keeps in memory.
    api
        ``"transformWithStateInPandas"``, which is taken where Spark has it, or ``"applyInPandasWithState"``. The latter
        writes the whole state of a bucket in every micro-batch that has a row of it: take more buckets. Answers are
        the same; a checkpoint keeps its API.

    """
    layout = Layout(key, numbers, words, label, id, order, weight)
    layout.check(df)
    plan = _plan(model, wait=wait, buckets=buckets, logged=logged, live=live)
    use_rocksdb(df.sparkSession)
    functions = spark_module("sql.functions")
    number = functions.expr(f"cast(pmod(xxhash64(`{key}`), {buckets}) as int)")
    groups = df.select(number.alias(BUCKET), layout.line(df).alias(LINE)).groupBy(BUCKET)
    answers = _answer_type(layout, df)
    if _chosen_api(groups, api) == TRANSFORM:
        return groups.transformWithStateInPandas(processor(plan), answers, "append", "none")
    return groups.applyInPandasWithState(in_rows(plan), answers, row_state.SCHEMA, "append", "NoTimeout")


def _chosen_api(groups: Any, asked: str | None) -> str:
    """The function of Spark's that keeps the state: the one asked for, or the first that this Spark has."""
    if asked not in (None, TRANSFORM, APPLY):
        raise ParameterError(
            f"The 'api' parameter of learn_stream must be {TRANSFORM!r}, {APPLY!r} or None. Got {asked!r} instead."
        )
    found = next((name for name in (asked, TRANSFORM, APPLY) if name is not None and hasattr(groups, name)), None)
    if found is None or (asked is not None and found != asked):
        raise ParameterError(f"this Spark has no {asked or TRANSFORM}; learn_stream needs Spark 4")
    return found


def _plan(model: Any, **limits: int) -> Plan:
    for name, given in limits.items():
        if not (isinstance(given, int) and not isinstance(given, bool) and given >= 1):
            raise ParameterError(f"The {name!r} parameter of learn_stream must be an int >= 1. Got {given!r} instead.")
    blank = make_learner(model)
    if not isinstance(blank, VaryingClassifier):
        raise ParameterError(f"learn_stream takes a classifier of this library. Got a {type(blank).__name__} instead.")
    blank.to_bytes()  # refuses what cannot be kept as bytes
    return Plan(blank, limits["wait"], limits["buckets"], limits["logged"], limits["live"])


def use_rocksdb(spark: Any) -> None:
    """Keep state in RocksDB, and its changes in a log; a setting of the user's that is another provider is refused."""
    found = spark.conf.get(PROVIDER, ROCKSDB)
    if "RocksDB" not in found and "HDFSBacked" not in found:
        raise ParameterError(f"learn_stream keeps its state in RocksDB; {PROVIDER} is {found}: unset it")
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set(CHANGELOG, "true")


def _answer_type(layout: Layout, df: Any) -> Any:
    types = spark_module("sql.types")
    label = layout.type_of(df, "label")
    return types.StructType(
        [
            types.StructField("key", layout.type_of(df, "key")),
            types.StructField("id", layout.type_of(df, "id")),
            types.StructField("label", label),
            types.StructField("probabilities", types.MapType(label, types.DoubleType())),
            types.StructField("steps", types.LongType()),
            types.StructField("kind", types.StringType()),
            types.StructField("problem", types.StringType()),
        ]
    )


def frames(answers: list[Answer]) -> Iterator[Any]:
    """Answers as frames of a bounded length."""
    import pandas

    for start in range(0, len(answers), _OUT):
        columns = zip(*answers[start : start + _OUT], strict=True)
        yield pandas.DataFrame(
            {name: pandas.Series(column, dtype=object) for name, column in zip(Answer._fields, columns, strict=True)}
        )


def processor(plan: Plan) -> Any:
    """The processor of the stream, a class of pyspark's; made here, so that this module imports without pyspark."""
    base = spark_module("sql.streaming").StatefulProcessor

    class Learning(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.name = uuid.uuid4().hex

        def init(self, handle: Any) -> None:
            self.store = SparkStore(handle)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
            answers: list[Answer] = []
            lines = [line for frame in rows for line in frame[LINE].tolist()]
            Bucket(self.name, int(key[0]), plan, self.store).run(lines, answers.append)
            yield from frames(answers)

        def close(self) -> None:
            pass

    return Learning()


def in_rows(plan: Plan) -> Any:
    """The function of the stream where the state of a bucket is one row."""
    name = uuid.uuid4().hex

    def learn(key: Any, rows: Iterator[Any], state: Any) -> Iterator[Any]:
        answers: list[Answer] = []
        lines = [line for frame in rows for line in frame[LINE].tolist()]
        store = row_state.RowStore(state.getOption)
        Bucket(name, int(key[0]), plan, store).run(lines, answers.append)
        state.update(store.row())
        yield from frames(answers)

    return learn


class SparkStore:
    """A bucket's part of the state, through pyspark's handle."""

    def __init__(self, handle: Any) -> None:
        self._token = handle.getValueState("token", "counter long, nonce binary, buckets int, wait int, model string")
        self._log = handle.getListState("log", "counter long, lines string")
        self._keys = handle.getMapState("keys", "key string", "state binary")

    def token(self) -> Token | None:
        """The token, None before the first micro-batch."""
        found = self._token.get()
        return None if found is None else Token(found[0], bytes(found[1]), *found[2:])

    def set_token(self, token: Token) -> None:
        """Write the token."""
        self._token.update(tuple(token))

    def log(self) -> Iterator[str]:
        """What was appended since the log was cleared, in order."""
        return iter([lines for _, lines in sorted(self._log.get())])

    def append(self, counter: int, text: str) -> None:
        """Add to the log the rows of the micro-batch of this counter."""
        self._log.appendValue((counter, text))

    def clear_log(self) -> None:
        """Empty the log."""
        self._log.clear()

    def snapshot(self, key: Key) -> bytes | None:
        """The bytes written for a key."""
        found = self._keys.getValue((json.dumps(key),))
        return None if found is None else bytes(found[0])

    def write(self, key: Key, data: bytes) -> None:
        """Write a key's bytes."""
        self._keys.updateValue((json.dumps(key),), (data,))
