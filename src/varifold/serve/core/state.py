"""State of one model, and the functions that change it.

A change is applied first and then written, so a change that the learner rejects is never written. A change is only
acknowledged once its transaction is on disk. Recovery replays the changes since the last snapshot with whatever version
of the library is installed; within one build the recovered learner is bit-identical.
"""

from __future__ import annotations

import contextlib
import heapq
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from varifold.ask import AskPolicy, Decision
from varifold.base.files import MISFITS, pack_label, unpack_label
from varifold.base.json_text import read_json, write_json
from varifold.base.learner import is_detector, is_regressor
from varifold.base.saving import capture
from varifold.errors import DataError, VarifoldError
from varifold.evaluate.label_queue import LabelQueue, Waiting, pack_prediction
from varifold.serve.core import learners
from varifold.serve.core.bodies import check_identifier, parse
from varifold.serve.core.budget import ModelBudget, ServerBudget
from varifold.serve.core.database import RESTORE, ROWS, RULES, Change, Database, ModelRow, SetAside, Written
from varifold.serve.core.devices import Devices
from varifold.serve.core.errors import (
    ConflictError,
    DiskError,
    ExpiredError,
    NotFoundError,
    RejectedError,
    RequestError,
    StateError,
    shortened,
)
from varifold.serve.core.input import KEPT, InputRules
from varifold.serve.core.monitor import Monitor

_CANDIDATES = 20
"""Requested instances that are predicted again in addition to those listed."""
_EACH = 500
"""Bytes of a waiting instance in addition to its features, or of an id."""
SCORE_EVERY = 8
"""Of the instances learned without a prior prediction, every 8th is predicted first, to measure the error."""


Partition = tuple[str, int]
"""Topic and number of a partition of Kafka."""

MOST_ALARMS = 1_000
_LINE_FEED = 10
"""Byte of a line feed; searching for a number is ten times as fast as for b"\\n"."""


@dataclass(frozen=True)
class Limits:
    """Limits on what a model stores in addition to its learner."""

    waiting: int = 100_000
    waiting_ms: int = 7 * 24 * 3_600_000
    ids: int = 100_000
    waiting_bytes: int = 256 << 20
    labels: int = 1_000


class Ids:
    """Ids chosen by clients, each under a key; the oldest are forgotten first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._keys: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str, given: str) -> tuple[int, int] | None:
        """Return the sequence number of an id, and the number of its waiting instance or 0."""
        return self._known.get((key, given))

    def keys_of(self, given: str) -> list[str]:
        """Return the keys under which an id is known."""
        return self._keys.get(given, [])

    def add(self, key: str, given: str, seq: int, number: int) -> tuple[str, str] | None:
        """Remember an id; return the one that is forgotten to make space."""
        self._known[key, given] = (seq, number)
        self._keys.setdefault(given, []).append(key)
        if len(self._known) <= self.most:
            return None
        oldest, _ = self._known.popitem(last=False)
        keys = self._keys[oldest[1]]
        keys.remove(oldest[0])
        if not keys:
            del self._keys[oldest[1]]
        return oldest


@dataclass
class Unwritten:
    """Changes of a model since its last transaction."""

    changes: list[Change] = field(default_factory=list)
    kept: dict[int, Waiting] = field(default_factory=dict)
    labelled: list[int] = field(default_factory=list)
    ids: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    forgotten: dict[tuple[str, str], None] = field(default_factory=dict)
    offsets: set[Partition] = field(default_factory=set)

    def add(self, first: int, *texts: bytes) -> None:
        """Add rows of JSON, in which a line feed can only be white space; `first` is the number of the first."""
        rows = [text.replace(b"\n", b" ") if _LINE_FEED in text else text for text in texts]
        if self.changes and self.changes[-1].kind == ROWS:
            self.changes[-1].rows.extend(rows)
        else:
            self.changes.append(Change(first, ROWS, rows))

    def take_label(self, number: int) -> None:
        """Record that a waiting instance received its label."""
        if self.kept.pop(number, None) is None:
            self.labelled.append(number)

    def remember(self, key: str, given: str, seq: int, number: int, forgotten: tuple[str, str] | None) -> None:
        """Record a new id, and the one that is forgotten for it."""
        self.forgotten.pop((key, given), None)
        self.ids[key, given] = (seq, number)
        if forgotten is not None:
            self.ids.pop(forgotten, None)
            self.forgotten[forgotten] = None


@dataclass
class Recovery:
    """Outcome of loading a model."""

    snapshot: int
    replayed: int
    seconds: float = 0.0
    set_aside: list[SetAside] = field(default_factory=list)


class Asked(NamedTuple):
    """Decision of the policy about a waiting instance."""

    decision: Decision
    confidence: float | None
    """Probability of the predicted label."""
    id: str | int | None
    """Id that the client chose."""

    @classmethod
    def of(cls, stored: list[Any]) -> Asked:
        """Read the JSON in the store."""
        *decision, confidence, given = stored
        return cls(Decision(*decision), confidence, given)


def _interleaved(first: list[Any], second: list[Any], every: int) -> list[Any]:
    """Merge two lists so that about one in `every` entries, from the second on, is of the second list."""
    merged: list[Any] = []
    ones, others = iter(first), iter(second)
    while len(merged) < len(first) + len(second):
        preferred, other = (others, ones) if len(merged) % every == 1 % every else (ones, others)
        one = next(preferred, None)
        merged.append(next(other) if one is None else one)
    return merged


class ModelState:
    """Learner, waiting instances, known ids and the monitor's counts, at one sequence number."""

    def __init__(
        self, name: str, learner: Any, limits: Limits, incarnation: str | None = None,
        budget: ServerBudget | None = None, rules: InputRules | None = None,
    ) -> None:  # fmt: skip
        self.id = 0
        self.name = name
        self.rules = rules or InputRules()
        self.asking = None if self.rules.ask is None else AskPolicy(**self.rules.ask)
        """Decides which labels of kept instances are requested."""
        self._requested: dict[int, None] = {}  # numbers of requested instances that may still wait
        self.budget = ModelBudget(budget or ServerBudget(), name)
        self.devices = Devices()
        self.learner = learner
        self.limits = limits
        self.incarnation = incarnation or secrets.token_hex(3)
        self.seq = 0
        self.time = 0
        self.learned = 0
        self.snapshot = 0
        self.waiting = LabelQueue(limits.waiting, limits.waiting_ms, limits.waiting_bytes)
        self.ids = Ids(limits.ids)
        self.offsets: dict[Partition, tuple[int, int]] = {}
        """First offset of each partition that is not learned, and first whose prediction is not sent."""
        self.monitor = Monitor()
        self.alarms: deque[dict[str, Any]] = deque(maxlen=MOST_ALARMS)
        """Alarms of a detector that no alert has reported yet."""
        self._recovering = False
        self.last: learners.Instance | None = None
        self._unwritten = Unwritten()
        self._expired_to = 0  # as of the last transaction

    @property
    def learner(self) -> Any:
        """Return the learner."""
        return self._learner

    @learner.setter
    def learner(self, learner: Any) -> None:
        if self.asking is not None and (is_regressor(learner) or not hasattr(learner, "predict_proba_one")):
            raise RejectedError("ask is for classifiers with probabilities: it requests labels where those are close")
        labels = None if is_detector(learner) or is_regressor(learner) else set(learner.classes)
        for label in labels or ():
            _check_stored(label)
        self._learner = learner
        self._field = getattr(learner, "key", None)  # set for a learner by key
        if self.keyed:
            self.devices.bound(learner)
        self.detects = is_detector(learner)
        self._labels = labels
        self.budget.set_learner(learner)

    @property
    def keyed(self) -> bool:
        """Whether there is one learner per key."""
        return self._field is not None

    # ------------------------------------------------------------------ changes

    def apply(self, body: dict[str, Any], text: bytes) -> dict[str, Any]:
        """Predict, learn or keep a row; return the response. An error leaves the state unchanged.

        Only a label of a detector whose key was forgotten also ends the wait of its instance.
        `text` is the row as JSON, which recovery replays. A detector scores the row, then learns it.
        """
        if "x" not in body:
            return self._label(body)
        if self.detects:
            return self._detect(body, text)
        if body.get("keep") and body.get("y") is None:
            return self._keep(body, text)
        return self._learn(body, text) if "y" in body else self.predict(body)

    def apply_rows(self, rows: Sequence[tuple[dict[str, Any], bytes]]) -> list[dict[str, Any]]:
        """Apply rows in order; a rejected row yields its error, the others are applied."""
        results: list[dict[str, Any]] = []
        while len(results) < len(rows):
            if not self.keyed and not self.detects:
                results += self._learn_plain(rows, len(results))
            for body, text in rows[len(results) : len(results) + 1]:
                try:
                    results.append(self.apply(body, text))
                except VarifoldError as error:
                    results.append({"error": shortened(error), "status": getattr(error, "status", 422)})
        return results

    def _learn_plain(self, rows: Sequence[tuple[dict[str, Any], bytes]], start: int) -> list[dict[str, Any]]:
        """Learn rows from `start` up to the first that is rejected, or more than an instance with a known label.

        It does what `_learn` does with each, within one allowance of memory. The row at which it stops changes nothing.
        """
        learner, monitor, labels = self._learner, self.monitor, self._labels
        first, seq, learned = self.seq + 1, self.seq, []
        with self.budget.learning() as counted, contextlib.suppress(VarifoldError, MemoryError):
            for body, text in map(rows.__getitem__, range(start, len(rows))):
                y = body.get("y")
                if len(body) != 2 or y is None or "x" not in body or (labels is not None and y not in labels):
                    break
                x = body["x"]
                scored = learner.predict_one(x) if (seq + 1) % SCORE_EVERY == 0 else None
                size = counted.with_instance(x, len(text))
                if size > counted.left:
                    break
                learner.learn_one(x, y)
                counted.size = size  # a rejected instance is not counted
                seq += 1
                learned.append(text)
                monitor.observe(self._watched(x))
                monitor.labelled()
                if scored is not None:
                    monitor.scored(learners.loss(scored, y, number=labels is None))
        self.seq = seq
        self.learned += len(learned)
        if learned:
            self._unwritten.add(first, *learned)
        return [{"seq": n} for n in range(first, seq + 1)]

    def restore(self, data: bytes) -> dict[str, Any]:
        """Replace the learner with the one in a model file, of the same kind unless the model is new.

        A model without input rules takes those by which the file's learner was trained.
        """
        learner = self.budget.server.make(learners.from_bytes, data)
        if self.seq > 0 and (new := learners.kind_of(learner)) != (old := learners.kind_of(self._learner)):
            raise RejectedError(
                f"the file holds a {new}, and the model {self.name!r} is a {old}; make another model and restore the "
                "file there"
            )
        self._replace(learner)
        self.seq += 1
        self._unwritten.changes.append(Change(self.seq, RESTORE, [data]))
        return {"seq": self.seq, "steps": self.learner.steps, "input": self.rules.to_json()}

    def _replace(self, learner: Any) -> None:
        """Replace the learner and, if there are no rules of reading, take those that the learner's file has."""
        rules = self.rules.for_file(learner.reading, getattr(learner, "key", None))
        self.learner = learner
        self._read_by(rules)

    def _read_by(self, rules: InputRules) -> None:
        """Set the input rules; fields whose strings are numbers are reported once, whatever the rules."""
        rules.numbers = self.rules.numbers
        self.rules = rules

    def change_rules(self, options: Any) -> dict[str, Any]:
        """Replace the input rules. The policy that requests labels, and the key, stay."""
        own = {name: value for name, value in self.rules.to_json().items() if name in KEPT}
        rules = InputRules.from_json(own | options if isinstance(options, dict) else options)
        if rules.ask != self.rules.ask:
            raise RejectedError(f"ask of the model {self.name!r} cannot be changed: leave it out of input")
        if rules.key not in (None, self._field):
            raise RejectedError(f"the key of the model {self.name!r} is {self._field!r}, and cannot be {rules.key!r}")
        rules.check_key(self._field)
        self._read_by(rules)
        self.seq += 1
        self._unwritten.changes.append(Change(self.seq, RULES, [write_json(rules.to_json())]))
        return {"seq": self.seq, "input": rules.to_json()}

    def advance(self, partition: Partition, *, learned: int | None = None, sent: int | None = None) -> None:
        """Set how far a partition of Kafka is learned or sent; stored with the changes that were applied so far."""
        before = self.offsets.get(partition, (0, 0))
        self.offsets[partition] = (before[0] if learned is None else learned, before[1] if sent is None else sent)
        self._unwritten.offsets.add(partition)

    def tick(self, milliseconds: int) -> None:
        """Set the time of the changes that follow; it never runs backwards."""
        self.time = max(self.time, milliseconds)

    def _learn(self, body: dict[str, Any], text: bytes) -> dict[str, Any]:
        given = body.get("id")
        if given is None:
            result = self._train(body, len(text))
        else:
            key, name = self._key_of(body), str(given)
            known = self.ids.get(key, name)
            if known is not None:
                return self._learn_again(known, body)
            self._check_held(0)
            result = self._train(body, len(text))
            self._remember(key, name, 0)
        self._unwritten.add(self.seq, text)
        return result

    def _train(self, body: dict[str, Any], size: int, delay: int | None = None) -> dict[str, Any]:
        """Learn the instance of a body of `size` bytes, without a label if y is None, and count it.

        One that waited, for `delay` milliseconds, is scored with its earlier prediction, which the memo describes.
        """
        x, y = self.features_of(body), body["y"]
        if self._labels is not None and y is not None and y not in self._labels:
            self._check_label(y)
        result, judged = self._before_learning(x, body)
        self.budget.learn(self._learner, x, *self._truth(x, body), size=size)
        self.seq = result["seq"] = self.seq + 1
        if "predicted" not in body:
            self._observe(x)
        if y is not None:
            self._count_label(x, y, self._loss(judged, body), delay)
            if self._field is not None and "label" in result:
                self.devices.predicted(x[self._field], result["label"])
        return result

    def _before_learning(self, x: learners.Instance, body: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the prediction that the response has, if any, and the one by which the learner is judged, or None.

        An instance that waited is judged by its earlier prediction. Of those without any, some are predicted.
        """
        result = {}
        if body.get("predict"):
            result = self.predicted(x)
            self.last = x
        if "predicted" in body:
            return result, unpack_label(body["predicted"])
        if result:
            return result, result["label"]
        if (self.seq + 1) % SCORE_EVERY:
            return result, None
        self._load(x)
        return result, self._learner.predict_one(x)

    def _truth(self, x: learners.Instance, body: dict[str, Any]) -> tuple[Any, ...]:
        """Return label, weight and, if it fits the learner, the memo of the prediction that the label judges."""
        truth = body["y"], body.get("w", 1.0)
        if "memo" not in body:
            return truth
        self._load(x)
        memo = learners.fitting_memo(self._learner, x, body["memo"])
        return truth if memo is None else (*truth, memo)

    def _loss(self, judged: Any, body: dict[str, Any]) -> float | None:
        """Return the loss of a prediction; None without one, or if its label was requested for its worth.

        Those are where the model is unsure: their loss would bias the error. Of the others, drawn at random, the error
        of all kept instances is estimated.
        """
        y = body["y"]
        if self.asking is not None and "predicted" in body:
            if "drawn" not in body:
                return None
            chance, confidence = body["drawn"]
            self.asking.score(judged == y, chance, confidence)
        return None if judged is None else learners.loss(judged, y, number=self._labels is None)

    def _count_label(self, x: learners.Instance, y: Any, loss: float | None, delay: int | None) -> None:
        """Count a learned label, the loss of the prediction before it, and the milliseconds between the two."""
        if self._labels is not None:
            self._labels.add(y)
        self.learned += 1
        self.monitor.labelled()
        if loss is not None:
            self.monitor.scored(loss)
        if self._field is not None:
            self.devices.labelled(x[self._field], delay, loss)

    def _detect(self, body: dict[str, Any], text: bytes) -> dict[str, Any]:
        """Score an instance, learn it, then its label if it has one; one whose id is known is not learned again.

        One that is kept waits for its label.
        """
        self._check_detected(body)
        given, waits = body.get("id"), bool(body.get("keep")) and body.get("y") is None
        key, name = ("", "") if given is None else (self._key_of(body), str(given))
        if given is not None and (known := self.ids.get(key, name)) is not None:
            return self._detect_again(known, body)
        instance = self._stored_instance(body) if waits else b""
        if waits or given is not None:
            self._check_held(len(instance))
        result = self._score_and_learn(body, len(text))
        number = 0
        if waits:
            number = self._wait(Waiting(self.time, instance, result["anomaly"]))
            result["id"] = self._public(number)
        if given is not None:
            result["id"] = given
            self._remember(key, name, number)
        self._unwritten.add(self.seq, text)
        return result

    def _check_detected(self, body: dict[str, Any]) -> None:
        """Reject a weight, a label that is not true or false, and labels of a detector that does not learn them."""
        if body.get("w", 1.0) != 1.0:
            raise RejectedError(f"the model {self.name!r} is a detector, which has no weights: leave out w")
        y = body.get("y")
        if y is None and not body.get("keep"):
            return
        if not learners.learns_labels(self._learner):
            raise RejectedError(
                f"the model {self.name!r} is a detector that learns no labels: send x alone, or use an autodetector"
            )
        if y is not None and not (isinstance(y, int | float) and y in (0, 1)):
            raise RejectedError(f"y is {str(y)[:60]!r}; the label of a detector is true for an anomaly, or else false")

    def _detect_again(self, known: tuple[int, int], body: dict[str, Any]) -> dict[str, Any]:
        """Handle an instance whose id is known: the label of one that waits, or a duplicate."""
        self.waiting.expire(self.time)
        if body.get("y") is not None and self.waiting.status(known[1]) == "waiting":
            return self._learn_kept(known[1], body)
        return {**self.predicted(self.features_of(body)), "seq": known[0], "id": body["id"], "duplicate": True}

    def _label_detected(self, body: dict[str, Any], delay: int | None = None) -> None:
        """Learn whether the instance of a body, which the detector has learned, is an anomaly."""
        x = self.features_of(body)
        self._load(x)
        self._learner.label_one(x, bool(body["y"]))
        self.monitor.labelled()
        if self._field is not None:
            self.devices.labelled(x[self._field], delay, None)

    def _score_and_learn(self, body: dict[str, Any], size: int) -> dict[str, Any]:
        """Score and learn the instance of a body of `size` bytes and count it; learn its label if it has one."""
        x = self.features_of(body)
        result = self.predicted(x)
        self.budget.learn(self._learner, x, size=size)
        self.seq = result["seq"] = self.seq + 1
        self.learned += 1
        self.last = x
        self._observe(x)
        self.monitor.scored(float(result["anomaly"]))
        more = {}
        if self._field is not None:
            more["key"] = key = x[self._field]
            self.devices.predicted(key, _shown(result))
            self.devices.scored(key, float(result["anomaly"]))
        if result["anomaly"] and not self._recovering:
            self.alarms.append({**result, **more})
        if body.get("y") is not None:
            self._label_detected(body)
        return result

    def _check_label(self, y: Any) -> None:
        """Reject a new label of a classifier that has as many as the limit allows."""
        assert self._labels is not None
        if len(self._labels) >= self.limits.labels:
            remedy = (
                "to predict numbers, make a model of a regressor, such as autoregressor"
                if isinstance(y, int | float) and not isinstance(y, bool)
                else "--max-labels sets the limit"
            )
            raise RejectedError(
                f"y is {str(y)[:60]!r}, a new label, and the classifier {self.name!r} has {len(self._labels):,} "
                f"already; {remedy}"
            )

    def _learn_again(self, known: tuple[int, int], body: dict[str, Any]) -> dict[str, Any]:
        """Handle a labelled instance whose id is known: the label of one that waits, or a duplicate."""
        self.waiting.expire(self.time)
        seq, number = known
        status = self.waiting.status(number)
        if status == "waiting" and body["y"] is not None:
            return self._learn_kept(number, body)
        if status == "expired":
            raise self.missing_error(number, body["id"])
        return {"seq": seq, "duplicate": True}

    def _keep(self, body: dict[str, Any], text: bytes) -> dict[str, Any]:
        given = body.get("id")
        key, name = ("", "") if given is None else (self._key_of(body), str(given))
        result = self.predict(body)
        if given is not None and self.ids.get(key, name) is not None:
            return {**result, "id": given, "duplicate": True}
        x = self._stored_instance(body, learners.memo(self._learner, self.features_of(body)))
        self._check_held(len(x))
        if "y" in body:
            self.budget.learn(self._learner, self.features_of(body), None, body.get("w", 1.0), size=len(text))
        asked = None
        if self.asking is not None:
            decision = self.asking.decide(body["x"], dict(result["probabilities"]))
            result["ask"] = decision.ask
            asked = [*decision, self.asking.confidence, given]
            text = write_json({**body, "asked": list(decision)})
        self.seq += 1
        number = self._wait(Waiting(self.time, x, result["label"], asked=asked))
        if result.get("ask"):
            self._requested[number] = None
            if len(self._requested) > 2 * len(self.waiting) + _CANDIDATES:  # most have their label, or expired
                self._requested = {n: None for n in self._requested if self.waiting.get(n) is not None}
        if given is not None:
            self._remember(key, name, number)
        self._unwritten.add(self.seq, text)
        return {**result, "seq": self.seq, "id": self._public(number) if given is None else given}

    def _stored_instance(self, body: dict[str, Any], memo: str | None = None) -> bytes:
        """Return the instance of a body, its key and its memo if it has them, as it waits for its label."""
        instance = {name: body[name] for name in ("x", "key") if body.get(name) is not None}
        return write_json(instance if memo is None else {**instance, "memo": memo})

    def _wait(self, kept: Waiting) -> int:
        """Let an instance wait for its label; return its number."""
        number = self.waiting.add(kept)
        self._unwritten.kept[number] = kept
        self._count_held()
        return number

    def _label(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.detects:
            self._check_detected(body)
        self.waiting.expire(self.time)
        number = self.number_of(str(body["id"]), body.get("key"))
        if self.waiting.get(number) is None:
            raise self.missing_error(number, body["id"])
        return self._learn_kept(number, body)

    def _learn_kept(self, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """Learn a waiting instance, as it was when it was kept, with the label of the body."""
        kept = self.waiting[number]
        predicted = pack_prediction(kept.prediction)
        row = {**read_json(kept.x), "y": body["y"], "w": body.get("w", 1.0), "predicted": predicted}
        if kept.asked is not None and (asked := Asked.of(kept.asked)).decision.drawn > 0.0:
            row["drawn"] = [asked.decision.drawn, asked.confidence]
        if self.detects:
            try:
                self._label_detected(row, self.time - kept.time)
            except DataError as error:  # its key was forgotten, and a new detector learns nothing from a label alone
                self._settle(number)
                raise ExpiredError(f"the label came too late, and is dropped: {error}") from error
            self.seq += 1
            result = {"seq": self.seq}
        else:
            result = self._train({**row, "predict": body.get("predict")}, len(kept.x), self.time - kept.time)
        self._settle(number)
        self._unwritten.add(self.seq, write_json(row))
        return result

    def _settle(self, number: int) -> None:
        """Let an instance wait no longer, because its label came."""
        self.waiting.remove(number)
        self._count_held()
        self._unwritten.take_label(number)

    def _remember(self, key: str, given: str, number: int) -> None:
        forgotten = self.ids.add(key, given, self.seq, number)
        self._unwritten.remember(key, given, self.seq, number, forgotten)
        self._count_held()

    def _check_held(self, size: int) -> None:
        """Reject an instance or an id if all models of the server hold too much and this one would hold more."""
        if len(self.waiting) < self.waiting.most and len(self.ids) < self.ids.most:
            self.budget.check_held(size)

    def _count_held(self) -> None:
        """Count the memory of waiting instances and ids in the budget."""
        self.budget.hold(self.waiting.bytes + _EACH * self.items)

    # ------------------------------------------------------------------ predictions

    def predict(self, body: dict[str, Any]) -> dict[str, Any]:
        """Predict an instance; only the monitor's counts change."""
        x = self.features_of(body)
        result = {**self.predicted(x), "seq": self.seq}
        self.last = x
        self._observe(x)
        if self._field is not None:
            self.devices.predicted(x[self._field], _shown(result))
        return result

    def predicted(self, x: learners.Instance) -> dict[str, Any]:
        """Return the prediction of an instance, which changes nothing."""
        self._load(x)
        return learners.predict(self._learner, x)

    def _load(self, x: learners.Instance) -> None:
        """Load the learner of an instance's key within the budget if it is on disk."""
        if self._field is not None:
            self.budget.load(self._learner, x[self._field])

    def features_of(self, body: dict[str, Any]) -> learners.Instance:
        """Return the instance of a body; a key is put into the field that a learner by key reads."""
        x: learners.Instance = body["x"]
        key, field = body.get("key"), self._field
        if field is None:
            if key is None:
                return x
            raise RejectedError(
                f"the model {self.name!r} has no learners by key; leave out the key or make a model with key"
            )
        if key is not None:
            return {**x, field: key}
        key = x.get(field)
        if key is None:
            raise RejectedError(
                f'the model {self.name!r} has one learner per {field!r}: the request needs "key", next to "x"'
            )
        if type(key) is float and key.is_integer():
            key = int(key)
        check_identifier(f"the key {field!r}", key)
        return {**x, field: key}

    def _observe(self, x: learners.Instance) -> None:
        """Count an instance, in total and for its device; the key is not a feature."""
        field = self._field
        if field is None:
            self.monitor.observe(self._watched(x))
            return
        rest = self._watched({name: value for name, value in x.items() if name != field})
        self.monitor.observe(rest)
        now = self.time if self._recovering else int(time.time() * 1000)
        self.devices.observe(x[field], rest, now)

    def _watched(self, x: learners.Instance) -> learners.Instance:
        """Return what is watched of an instance: of the words of a text, which come and go, only that there are any."""
        texts = self.rules.texts
        if not texts:
            return x
        return {column if (column := name.rpartition(":")[0]) in texts else name: value for name, value in x.items()}

    def worth_asking(self, most: int) -> list[dict[str, Any]]:
        """Return the waiting instances whose labels were requested, those worth most first.

        The best by the worth that they had are predicted again, since the learner has changed. Those that were drawn
        at random come in between, oldest first and as often as they are drawn: which of them get labels must not depend
        on their worth, because the error is estimated from them.
        """
        if self.asking is None:
            raise RejectedError(f'the model {self.name!r} requests no labels; make it with "ask": {{"budget": 0.05}}')
        waiting: list[tuple[int, Waiting, Asked]] = []
        now = int(time.time() * 1000)
        for number in list(self._requested):
            kept = self.waiting.get(number)
            if kept is None or kept.asked is None:
                del self._requested[number]
            elif now - kept.time <= self.limits.waiting_ms:
                waiting.append((number, kept, Asked.of(kept.asked)))
        drawn = [one for one in waiting if one[2].decision.drawn]
        best = heapq.nlargest(
            most + _CANDIDATES,
            (one for one in waiting if not one[2].decision.drawn),
            key=lambda one: (one[2].decision.worth, one[0]),
        )
        ranked = sorted((self._listed(*one) for one in best), key=lambda row: -row["worth"])
        listed = _interleaved(ranked, drawn, round(1.0 / self.asking.explore))[:most]
        return [one if isinstance(one, dict) else self._listed(*one) for one in listed]

    def _listed(self, number: int, kept: Waiting, asked: Asked) -> dict[str, Any]:
        """Describe a waiting instance, as it is predicted now."""
        assert self.asking is not None
        body = read_json(kept.x)
        x = self.features_of(body)
        result = self.predicted(x)
        worth = self.asking.worth(body["x"], dict(result["probabilities"]))
        return {
            "id": self._public(number),
            "name": asked.id,
            "key": None if self._field is None else x[self._field],
            "x": body["x"],
            "time": kept.time,
            "label": result["label"],
            "probabilities": result["probabilities"],
            "worth": worth,
            "drawn": asked.decision.drawn > 0.0,
        }

    # ------------------------------------------------------------------ ids

    def _key_of(self, body: dict[str, Any]) -> str:
        """Return the key of a body as JSON, empty for none: ids are scoped by key."""
        return "" if self._field is None else write_json(self.features_of(body)[self._field]).decode()

    def _public(self, number: int) -> str:
        return f"{self.name}.{self.incarnation}.{number}"

    def knows(self, given: str) -> bool:
        """Return whether a client used this id, under any key."""
        return bool(self.ids.keys_of(given))

    def seq_of(self, given: str, key: Any = None) -> int | None:
        """Return the sequence number of the change that introduced a client's id; None for an unknown id."""
        known = self._find(given, key)
        return None if known is None else known[0]

    def number_of(self, given: str, key: Any = None) -> int:
        """Return the number of the waiting instance with this id, made by the server or chosen by the client."""
        known = self._find(given, key)
        if known is not None and known[1]:
            return known[1]
        name, _, rest = given.rpartition(f".{self.incarnation}.")
        if name == self.name and rest.isascii() and rest.isdigit() and len(rest) < 16:
            return int(rest)
        if known is not None:
            raise ConflictError(f"the instance {given!r} was learned with its label")
        raise NotFoundError(f"no instance with the id {given!r} waits for a label")

    def _find(self, given: str, key: Any) -> tuple[int, int] | None:
        """Look up an id under its key; without a key it must be known under exactly one."""
        if key is not None:
            return self.ids.get(write_json(key).decode(), given)
        keys = self.ids.keys_of(given)
        if len(keys) > 1:
            raise ConflictError(f'the id {given!r} was given under {len(keys):,} keys; send the "key" as well')
        return self.ids.get(keys[0], given) if keys else None

    def missing_error(self, number: int, given: Any) -> RequestError:
        """Return an error that explains why an instance does not wait."""
        status = self.waiting.status(number)
        if status == "labelled":
            return ConflictError(f"the instance {given!r} has its label already")
        if status in ("expired", "waiting"):  # it waits, but is too old: the next change drops it
            hours = self.limits.waiting_ms / 3_600_000
            return ExpiredError(
                f"the instance {given!r} waits no longer: at most {self.limits.waiting:,} are kept, "
                f"{self.limits.waiting_bytes >> 20:,} MiB of them, for {hours:g} hours"
            )
        return NotFoundError(f"no instance with the id {given!r} waits for a label")

    # ------------------------------------------------------------------ storing

    @property
    def items(self) -> int:
        """Count the waiting instances and the known ids."""
        return len(self.waiting) + len(self.ids)

    @property
    def row(self) -> ModelRow:
        """Return the model's row in the database."""
        queue = self.waiting
        return ModelRow(
            self.id, self.name, self.incarnation, self.seq, self.time, self.learned, queue.last, queue.expired_to,
            queue.expired, self.snapshot,
        )  # fmt: skip

    def take_unwritten(self) -> Written | None:
        """Return the changes since the last call, for the next transaction; None if there are none."""
        new = self._unwritten
        if not new.changes and not new.offsets:
            return None
        self._unwritten = Unwritten()
        kept = [
            (
                number,
                one.time,
                one.x.decode(),
                write_json(pack_prediction(one.prediction)).decode(),
                write_json(one.asked).decode(),
            )
            for number, one in new.kept.items()
            if number > self.waiting.expired_to
        ]
        ids = [(*names, *known) for names, known in new.ids.items()]
        expired = self.waiting.expired_to > self._expired_to
        self._expired_to = self.waiting.expired_to
        offsets = [(*partition, *self.offsets[partition]) for partition in new.offsets]
        return Written(self.row, new.changes, kept, new.labelled, ids, list(new.forgotten), expired, offsets)

    def capture(self) -> Callable[[], list[bytes]]:
        """Copy the current state; return a function that encodes it as the content of a snapshot.

        That content is JSON with counts, devices and input rules, then the learner.
        """
        facts = {
            "monitor": self.monitor.dump(),
            "input": self.rules.to_json(),
            "devices": self.devices.dump(),
            "asking": None if self.asking is None else self.asking.dump(),
        }
        head, learner = write_json(facts), capture(self.learner)
        return lambda: [head, learner()]

    def parts(self) -> list[bytes]:
        """Return the content of a snapshot of the current state."""
        return self.capture()()

    @classmethod
    def load(
        cls, database: Database, row: ModelRow, limits: Limits, budget: ServerBudget | None = None
    ) -> tuple[ModelState, Recovery]:
        """Load a model as of its last transaction.

        A change that fails is set aside with its reason; the others are replayed.
        """
        try:
            return cls._recovered(database, row, limits, budget)
        except (StateError, DiskError):
            raise
        except (VarifoldError, *MISFITS) as error:
            reason = str(error) if isinstance(error, VarifoldError) else repr(error)
            raise StateError(
                f"what is stored of the model {row.name!r} was written by another version of varifold, or is damaged: "
                f"{reason}. Read it with the version that wrote it"
            ) from error

    @classmethod
    def _recovered(
        cls, database: Database, row: ModelRow, limits: Limits, budget: ServerBudget | None
    ) -> tuple[ModelState, Recovery]:
        head, *parts = database.snapshot(row)
        facts = read_json(head)
        rules = InputRules.from_json(facts["input"])
        state = cls(row.name, learners.from_bytes(b"".join(parts)), limits, row.incarnation, budget, rules)
        state.monitor.fill(facts["monitor"])
        state.devices.fill(facts["devices"])
        if state.asking is not None:
            state.asking = AskPolicy.load(facts["asking"])
        state.time, state._recovering = row.time, True
        state.id, state.seq, state.snapshot = row.id, row.snapshot, row.snapshot
        recovery = Recovery(row.snapshot, row.seq - row.snapshot)
        for change in database.changes(row):
            for offset, data in enumerate(change.rows):
                state.seq = change.first + offset - 1
                try:
                    state._replay(change.kind, data)
                except Exception as error:  # noqa: BLE001 - whatever it is, the other changes are replayed
                    reason = str(error) if isinstance(error, VarifoldError) else repr(error)
                    recovery.set_aside.append(SetAside(change.first + offset, change.kind, data, reason))
        state.seq, state.learned, state._recovering = row.seq, row.learned, False
        waiting = [
            [number, time, x, read_json(predicted), read_json(asked)]
            for number, time, x, predicted, asked in database.waiting(row)
        ]
        state._expired_to = row.expired_to
        state.waiting.fill({"last": row.last, "expired_to": row.expired_to, "expired": row.expired, "waiting": waiting})
        state._requested = {one[0]: None for one in waiting if one[4] is not None and Asked.of(one[4]).decision.ask}
        for key, given, seq, number in database.ids(row):
            state.ids.add(key, given, seq, number)
        state.offsets = {(topic, part): (learned, sent) for topic, part, learned, sent in database.offsets(row)}
        state._count_held()
        return state, recovery

    def _replay(self, kind: int, data: bytes) -> None:
        """Replay a change of the store."""
        if kind == RESTORE:
            self._replace(self.budget.server.make(learners.from_bytes, data))
            return
        body = parse(data)
        if kind == RULES:
            self.rules = InputRules.from_json(body)
            return
        if self.detects and "predicted" in body:
            self._label_detected(body)
        elif self.detects:
            self._score_and_learn(body, len(data))
        elif "y" in body:
            self._train(body, len(data))
        else:
            self._observe(self.features_of(body))
        if self.asking is not None and "asked" in body:
            self.asking.repeat(body["x"], Decision(*body["asked"]))


def _shown(result: dict[str, Any]) -> Any:
    """Return the prediction in a result; of a detector, whether it is an anomaly."""
    return result["label"] if "label" in result else "anomaly" if result["anomaly"] else "usual"


def _check_stored(label: Any) -> None:
    """Reject a label of a learner that the store could not hold in a prediction: half of a surrogate pair."""
    try:
        write_json(pack_label(label))
    except TypeError as error:
        raise RejectedError(f"the label {str(label)[:60]!r} of the learner is not valid Unicode") from error
