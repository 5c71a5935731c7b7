"""`learn_stream`: one learner per key on a Spark stream, exactly once, whatever fails."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from varifold.ask import AskPolicy
from varifold.base.classifier import VaryingClassifier
from varifold.base.detector import VaryingDetector
from varifold.base.learner import is_detector
from varifold.base.nested import make_learner
from varifold.base.params import Integer, validate
from varifold.errors import ParameterError
from varifold.spark.bucket import Bucket, Key, Plan, Token
from varifold.spark.keyed import Detection, Output
from varifold.spark.layout import BUCKET, LINE, Columns, Layout, spark_module

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
TRANSFORM = "transformWithStateInPandas"
_OUT = 10_000
"""Outputs in one frame."""


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
    ask: AskPolicy | float | None = None,
) -> Any:
    """Predict and learn a stream with one learner per key; return a stream of predictions and problems.

    The learner of a row's key predicts every row with features and, if it has a label, learns it. A row without
    features is the label of an earlier row with the same key and id. As long as the rows of each key arrive in order,
    the results equal those of one process that reads the rows of the key, wherever micro-batches were cut and whatever
    was killed and restarted. Learners are never dropped, however long their key is silent.

    The output has the columns key, id, label, probabilities (by label), steps (learned before), kind, problem, ask
    and drawn. There is one row of kind ``"prediction"`` per instance. A row of kind ``"problem"`` describes an
    input row that changed nothing: a value that cannot be learned, a label whose id is not known. A row that
    arrived after one of a higher order is a problem as well, but it is processed on arrival.
    ``writeStream.partitionBy("kind")`` writes problems to a separate folder.

    A detector, such as ``"autodetector"``, scores every row with features, then learns it; the column of `label` is
    not read. Its output has score, p_value and anomaly, whether that is an alarm at the detector's rate, instead of
    label and probabilities.

    Parameters
    ----------
    df
        A streaming frame.
    key
        Column of the key, a string or an int.
    model
        A learner, which is cloned for every key, or its text, such as ``"arow:r=1"``.
    numbers, words
        Columns of the features: the name of a map column (string to double, string to string), or a list of columns.
    label, id, order, weight
        Columns; a label is a string, a number or a bool, an order a number or a time.
    wait
        Most instances per key that wait for their label; the oldest is dropped for a new one.
    buckets
        Number of groups in which keys are processed: a few per core, and about one per thousand keys. It cannot change
        for a checkpoint.
    logged
        Mean number of rows per key after which learners are written to the state; until then the state has the rows.
    live
        Most learners that a Python worker keeps in memory.
    ask
        A policy, or its budget, that decides which rows without a label are worth one: the column ask is true or false
        for rows that wait for their label, else null; drawn is the probability with which the row was drawn whatever
        its label is worth, 0 if it was not. Labels of drawn rows, weighted by 1 / drawn, estimate the error among all
        rows. Every key has its own policy and budget. It cannot change for a checkpoint.

    """
    plan = _plan(model, ask, wait=wait, buckets=buckets, logged=logged, live=live)
    layout = Layout(key, numbers, words, None if is_detector(plan.blank) else label, id, order, weight)
    layout.check(df)
    use_rocksdb(df.sparkSession)
    functions = spark_module("sql.functions")
    number = functions.expr(f"cast(pmod(xxhash64(`{key}`), {buckets}) as int)")
    groups = df.select(number.alias(BUCKET), layout.line(df).alias(LINE)).groupBy(BUCKET)
    if not hasattr(groups, TRANSFORM):
        raise ParameterError(f"this Spark has no {TRANSFORM}; learn_stream needs Spark 4")
    return groups.transformWithStateInPandas(processor(plan), _output_type(layout, df, plan.blank), "append", "none")


def _plan(model: Any, ask: AskPolicy | float | None = None, **limits: int) -> Plan:
    validate("learn_stream", dict.fromkeys(limits, Integer(1)), limits)
    blank = make_learner(model)
    if not isinstance(blank, VaryingClassifier | VaryingDetector):
        raise ParameterError(
            f"learn_stream needs a classifier or a detector of this library. Got a {type(blank).__name__} instead."
        )
    blank.to_bytes()  # raises an error for a learner that cannot be saved
    if ask is not None and is_detector(blank):
        raise ParameterError(f"ask requests labels, which a {type(blank).__name__} does not learn: leave it out")
    policy = ask if ask is None or isinstance(ask, AskPolicy) else AskPolicy(ask)
    return Plan(blank, limits["wait"], limits["buckets"], limits["logged"], limits["live"], policy)


def use_rocksdb(spark: Any) -> None:
    """Keep state in RocksDB, and its changes in a log; raise an error if the user set another provider."""
    provider = spark.conf.get(PROVIDER, ROCKSDB)
    if "RocksDB" not in provider and "HDFSBacked" not in provider:
        raise ParameterError(f"learn_stream keeps its state in RocksDB; {PROVIDER} is {provider}: unset it")
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set(CHANGELOG, "true")


def _output_type(layout: Layout, df: Any, learner: Any) -> Any:
    types = spark_module("sql.types")
    label = layout.type_of(df, "label")
    kinds = {
        "key": layout.type_of(df, "key"),
        "id": layout.type_of(df, "id"),
        "label": label,
        "probabilities": types.MapType(label, types.DoubleType()),
        "score": types.DoubleType(),
        "p_value": types.DoubleType(),
        "anomaly": types.BooleanType(),
        "steps": types.LongType(),
        "kind": types.StringType(),
        "problem": types.StringType(),
        "ask": types.BooleanType(),
        "drawn": types.DoubleType(),
    }
    names = (Detection if is_detector(learner) else Output)._fields
    return types.StructType([types.StructField(name, kinds[name]) for name in names])


def frames(outputs: list[Output | Detection]) -> Iterator[Any]:
    """Convert outputs to frames of bounded length."""
    import pandas

    names = outputs[0]._fields if outputs else ()
    for start in range(0, len(outputs), _OUT):
        columns = zip(*outputs[start : start + _OUT], strict=True)
        yield pandas.DataFrame(
            {name: pandas.Series(column, dtype=object) for name, column in zip(names, columns, strict=True)}
        )


def processor(plan: Plan) -> Any:
    """Make the processor of the stream; its class is defined here so that this module imports without pyspark."""
    base = spark_module("sql.streaming").StatefulProcessor

    class Learning(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.name = uuid.uuid4().hex

        def init(self, handle: Any) -> None:
            self.state = SparkState(handle)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
            outputs: list[Output | Detection] = []
            lines = [line for frame in rows for line in frame[LINE].tolist()]
            Bucket(self.name, int(key[0]), plan, self.state).run(lines, outputs.append)
            yield from frames(outputs)

        def close(self) -> None:
            pass

    return Learning()


class SparkState:
    """A bucket's part of the state, through pyspark's handle; see `BucketState`."""

    def __init__(self, handle: Any) -> None:
        self._token = handle.getValueState("token", "counter long, nonce binary, buckets int, wait int, model string")
        self._log = handle.getListState("log", "counter long, lines string")
        self._keys = handle.getMapState("keys", "key string", "state binary")

    def token(self) -> Token | None:
        """Return the token, None before the first micro-batch."""
        row = self._token.get()
        return None if row is None else Token(row[0], bytes(row[1]), *row[2:])

    def set_token(self, token: Token) -> None:
        """Write the token."""
        self._token.update(tuple(token))

    def log(self) -> Iterator[str]:
        """Yield what was appended since the log was cleared, in order."""
        return iter([lines for _, lines in sorted(self._log.get())])

    def append(self, counter: int, text: str) -> None:
        """Append the rows of the micro-batch of this counter to the log."""
        self._log.appendValue((counter, text))

    def clear_log(self) -> None:
        """Clear the log."""
        self._log.clear()

    def snapshot(self, key: Key) -> bytes | None:
        """Return the bytes written for a key."""
        row = self._keys.getValue((json.dumps(key),))
        return None if row is None else bytes(row[0])

    def write(self, key: Key, data: bytes) -> None:
        """Write a key's bytes."""
        self._keys.updateValue((json.dumps(key),), (data,))
