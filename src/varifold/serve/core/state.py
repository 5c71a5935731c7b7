"""The state of one model, and the one function that changes it.

Every change is a record that is applied in the order of the journal: while serving, once the record is on disk, and at
recovery, when it is read again. Whatever a record leads to, a refusal included, depends on the state and the record
alone, so that both ways end in the same state, equal to the bit.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from varifold.errors import VarifoldError
from varifold.evaluate.label_queue import LabelQueue, Waiting
from varifold.serve.core import learners
from varifold.serve.core.bodies import changes, parse
from varifold.serve.core.errors import ConflictError, ExpiredError, NotFoundError, RefusedError, RequestError
from varifold.serve.core.journal import KEEP, LABEL, LEARN, RESTORE, ROWS, Record
from varifold.serve.core.monitor import Monitor
from varifold.serve.extra import orjson

SCORE_EVERY = 8
"""Of the instances that are learned without a prediction before, one in so many is predicted first to be scored."""


@dataclass(frozen=True)
class Limits:
    """Bounds of what a model remembers besides its learner."""

    waiting: int = 100_000
    waiting_ms: int = 7 * 24 * 3_600_000
    ids: int = 100_000


class ModelState:
    """Learner, waiting instances, ids seen and what the monitor has counted, at one sequence number."""

    def __init__(self, name: str, learner: Any, limits: Limits, incarnation: str | None = None) -> None:
        self.name = name
        self.learner = learner
        self.limits = limits
        self.incarnation = incarnation or secrets.token_hex(3)
        self.seq = 0
        self.time = 0
        self.learned = 0
        self.waiting = LabelQueue(limits.waiting, limits.waiting_ms)
        self.monitor = Monitor()
        self.last: learners.Instance | None = None
        self._ids: OrderedDict[str, list[int]] = (
            OrderedDict()
        )  # id of the client -> sequence number, number of the waiting instance or 0

    # ------------------------------------------------------------------ changes

    def check(self, body: dict[str, Any]) -> None:
        """Refuse a change that the learner would refuse, before it is journaled; nothing changes.

        Only a change that is under way at the same time can make one refused later, when it is applied.
        """
        x, y, given = body.get("x"), body.get("y"), body.get("id")
        try:
            kept = None if given is None else self._waiting_under(str(given))
            if kept is not None:
                learners.check(self.learner, self._kept_features(kept.x), y)
            elif x is not None and (given is None or str(given) not in self._ids):
                learners.check(self.learner, self.features_of(body), y)
        except RequestError:
            raise
        except VarifoldError as error:
            raise RefusedError(str(error)) from error

    def _waiting_under(self, given: str) -> Waiting | None:
        """The instance that waits under an id, if one does."""
        try:
            return self.waiting.get(self.number_of(given))
        except RequestError:
            return None

    def apply(self, kind: int, body: Any) -> Any:
        """Apply one record; the answer, or an error of ours with the state unchanged.

        Only the sequence number goes on, and instances that waited too long are dropped.
        """
        if kind == ROWS:
            return self._rows(body)
        self.seq += 1
        if kind == LEARN:
            return self._learn(body)
        if kind == KEEP:
            return self._keep(body)
        if kind == LABEL:
            return self._label(body)
        if kind == RESTORE:
            self.learner = learners.from_bytes(body)
            return {"seq": self.seq, "steps": self.learner.steps}
        raise ValueError(f"there is no kind {kind} of record")

    def replay(self, record: Record) -> None:
        """Apply a record of the journal; what was refused then is refused again."""
        body: Any = record.payload
        if record.kind == ROWS:
            body = [parse(line) for line in record.payload.split(b"\n")]
        elif record.kind != RESTORE:
            body = parse(record.payload)
        try:
            self.apply(record.kind, body)
        except VarifoldError:
            return

    def _rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Apply the rows of a batch."""
        return [self._row(row) for row in rows]

    def _row(self, body: dict[str, Any]) -> dict[str, Any]:
        """One row of a batch: an error becomes its answer, the other rows go on. Plain predictions take no number."""
        if changes(body):
            self.seq += 1
        try:
            if "x" not in body:
                return self._label(body)
            if "y" in body:
                return self._learn(body)
            return self._keep(body) if body.get("keep") else self.predict(body)
        except VarifoldError as error:
            return _refusal(error)

    def _learn(self, body: dict[str, Any]) -> dict[str, Any]:
        given = body.get("id")
        if given is not None and (known := self._ids.get(str(given))) is not None:
            return self._learn_again(known, body)
        x, y = self.features_of(body), body["y"]
        result: dict[str, Any] = {"seq": self.seq}
        scored = None
        if body.get("predict"):
            result = {**learners.answer(self.learner, x), "seq": self.seq}
            scored = result["label"]
            self.last = x
        elif self.seq % SCORE_EVERY == 0:
            scored = learners.predict(self.learner, x)
        learners.learn(self.learner, x, y, body.get("w", 1.0))
        if given is not None:
            self._remember(str(given), 0)
        self._saw(x)
        self._count_label(scored, y)
        return result

    def _learn_again(self, known: list[int], body: dict[str, Any]) -> dict[str, Any]:
        """A labelled instance whose id is known: the label of one that waits, or a duplicate."""
        self.waiting.expire(self.time)
        seq, number = known
        fate = self.waiting.fate(number)
        if fate == "waiting":
            return self._learn_kept(number, body)
        if fate == "expired":
            raise self.why_not(number, body["id"])
        return {"seq": seq, "duplicate": True}

    def _keep(self, body: dict[str, Any]) -> dict[str, Any]:
        given = body.get("id")
        known = self._ids.get(str(given)) if given is not None else None
        result = self._answered(body)
        if known is not None:
            result["id"] = given
            result["duplicate"] = True
            return result
        number = self.waiting.add(Waiting(self.time, _stored(body), result["label"]))
        if given is not None:
            self._remember(str(given), number)
        result["id"] = self._public(number) if given is None else given
        return result

    def _label(self, body: dict[str, Any]) -> dict[str, Any]:
        self.waiting.expire(self.time)
        number = self.number_of(str(body["id"]))
        if self.waiting.get(number) is None:
            raise self.why_not(number, body["id"])
        return self._learn_kept(number, body)

    def _learn_kept(self, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """Learn a waiting instance, as it was when it was kept, with the label of the body."""
        instance = self.waiting[number]
        x = self._kept_features(instance.x)
        result: dict[str, Any] = {"seq": self.seq}
        if body.get("predict"):
            result = {**learners.answer(self.learner, x), "seq": self.seq}
        learners.learn(self.learner, x, body["y"], body.get("w", 1.0))
        self.waiting.remove(number)
        self._count_label(instance.answer, body["y"])
        return result

    def _count_label(self, given: Any, y: Any) -> None:
        self.learned += 1
        self.monitor.labelled()
        if given is not None:
            self.monitor.scored(learners.loss(given, y))

    def _remember(self, given: str, number: int) -> None:
        self._ids[given] = [self.seq, number]
        if len(self._ids) > self.limits.ids:
            self._ids.popitem(last=False)

    def tick(self, milliseconds: int) -> None:
        """The time of the changes that follow; it never runs backwards."""
        self.time = max(self.time, milliseconds)

    # ------------------------------------------------------------------ questions

    def predict(self, body: dict[str, Any]) -> dict[str, Any]:
        """An answer that is not kept; changes nothing but what the monitor has counted."""
        return self._answered(body)

    def _answered(self, body: dict[str, Any]) -> dict[str, Any]:
        x = self.features_of(body)
        result = {**learners.answer(self.learner, x), "seq": self.seq}
        self.last = x
        self._saw(x)
        return result

    def features_of(self, body: dict[str, Any]) -> learners.Instance:
        """Return the instance of a body; a key goes into the field that a learner by key reads."""
        found: learners.Instance = body["x"]
        key = body.get("key")
        field = getattr(self.learner, "key", None)
        if key is None:
            if field is not None and found.get(field) is None:
                raise RefusedError(
                    f'the model {self.name!r} has one learner per {field!r}: the request needs "key", beside "x"'
                )
            return found
        if field is None:
            raise RefusedError(
                f"the model {self.name!r} has no learners by key; leave out the key or make one with key"
            )
        return {**found, field: key}

    def _kept_features(self, stored: bytes) -> learners.Instance:
        """The instance that _stored() gave; with a key it is an array of both."""
        if not stored.startswith(b"["):
            return self.features_of({"x": orjson.loads(stored)})
        x, key = orjson.loads(stored)
        return self.features_of({"x": x, "key": key})

    def _saw(self, x: learners.Instance) -> None:
        """Count an instance. The monitor is kept as JSON, so the name of a learner's key is counted as text."""
        field = getattr(self.learner, "key", None)
        if field is not None and not isinstance(field, str) and field in x:
            x = {str(name): value for name, value in x.items()}
        self.monitor.saw(x)

    def _public(self, number: int) -> str:
        return f"{self.name}.{self.incarnation}.{number}"

    def knows(self, given: str) -> bool:
        """Whether a client gave an instance this id."""
        return given in self._ids

    def seq_of(self, given: str) -> int | None:
        """The change with which an id of a client's came; None for an id that is not held."""
        return self._ids[given][0] if given in self._ids else None

    def number_of(self, given: str) -> int:
        """The waiting instance that an id means: one of ours, or one that the client chose."""
        known = self._ids.get(given)
        if known is not None and known[1]:
            return known[1]
        name, _, rest = given.rpartition(f".{self.incarnation}.")
        if name == self.name and rest.isascii() and rest.isdigit() and len(rest) < 16:
            return int(rest)
        if known is not None:
            raise ConflictError(f"the instance {given!r} was learned with its label")
        raise NotFoundError(f"no instance with the id {given!r} waits for a label")

    def why_not(self, number: int, given: Any) -> RequestError:
        """Why an instance does not wait."""
        fate = self.waiting.fate(number)
        if fate == "labelled":
            return ConflictError(f"the instance {given!r} has its label already")
        if fate in ("expired", "waiting"):  # one that waits is too old, and dropped with the next change
            hours = self.limits.waiting_ms / 3_600_000
            return ExpiredError(
                f"the instance {given!r} waits no longer: {self.limits.waiting:,} are kept, for {hours:g} hours"
            )
        return NotFoundError(f"no instance with the id {given!r} waits for a label")

    # ------------------------------------------------------------------ keeping

    @property
    def items(self) -> int:
        """Waiting instances and ids held."""
        return len(self.waiting) + len(self._ids)

    def dump(self) -> dict[str, Any]:
        """Everything but the learner, as JSON."""
        return {
            "name": self.name,
            "incarnation": self.incarnation,
            "seq": self.seq,
            "time": self.time,
            "learned": self.learned,
            "waiting": self.waiting.dump(),
            "ids": [[given, *known] for given, known in self._ids.items()],
            "monitor": self.monitor.dump(),
        }

    @classmethod
    def restored(cls, found: dict[str, Any], learner: Any, limits: Limits) -> ModelState:
        """What dump() gave, with its learner."""
        state = cls(found["name"], learner, limits, found["incarnation"])
        state.seq, state.time, state.learned = found["seq"], found["time"], found["learned"]
        state.waiting.fill(found["waiting"])
        state.monitor.fill(found["monitor"])
        state._ids = OrderedDict((given, [seq, number]) for given, seq, number in found["ids"])
        return state


def _refusal(error: VarifoldError) -> dict[str, Any]:
    """The answer to a row that was refused."""
    return {"error": str(error), "status": getattr(error, "status", 422)}


def _stored(body: dict[str, Any]) -> bytes:
    """The instance of a body as JSON; a key stands beside it, because the name of its field may be a number."""
    x, key = body["x"], body.get("key")
    text = orjson.dumps(x)
    return text if key is None else b"[%b,%b]" % (text, orjson.dumps(key))
