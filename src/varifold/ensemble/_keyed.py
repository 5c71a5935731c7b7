"""One learner per value of a field, in bounded memory: the base of `PerKey` and `PerKeyRegressor`."""

from __future__ import annotations

import copy
import functools
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from varifold._engine.names.vocabulary import Vocabulary, is_missing, plain_label
from varifold._engine.targets.target import checked_steps
from varifold.base import Block, files, frames
from varifold.base.blocks import to_block, with_numbers
from varifold.base.learner import Task, VaryingLearner, checked_schedule, learns_unlabelled
from varifold.base.nested import make_learner, unpack_params
from varifold.base.params import AnyOf, Integer, validate
from varifold.base.saving import Saved, pack_learners, unpack_learners
from varifold.base.text_columns import warn_texts
from varifold.ensemble._spill_file import Key, SpillFile
from varifold.errors import (
    BusyLearnerError,
    DataError,
    FeatureNameError,
    FeatureValueError,
    ModelFileError,
    ParameterError,
    UnknownNameError,
    VarifoldError,
)

_DECODED = 100
"""Most learners that are decoded when a file is loaded; the others are when they are used."""
K = TypeVar("K", bound="KeyedLearner")
P = ParamSpec("P")
R = TypeVar("R")


def exclusive(method: Callable[Concatenate[K, P], R]) -> Callable[Concatenate[K, P], R]:
    """Allow one thread at a time in the decorated methods; raise `BusyLearnerError` in a second one."""

    @functools.wraps(method)
    def guarded(self: K, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self._lock.acquire(blocking=False):
            raise BusyLearnerError(
                f"this {type(self).__name__} is in use by another thread; it is for one thread at a time"
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            self._lock.release()

    return guarded


_KINDS = {
    "classification": ("classifier", "PerKey"),
    "regression": ("regressor", "PerKeyRegressor"),
    "detection": ("detector", "PerKeyDetector"),
}


class KeyedLearner(Saved):
    """Base class of `PerKey` and `PerKeyRegressor`: learners by key, in memory and on disk."""

    _method: ClassVar[str]
    _task: ClassVar[Task]
    _numeric: ClassVar[bool] = False

    def __init__(self, model: Any, key: Key = "key", most: int = 1_000, max_keys: int | None = None) -> None:
        if not (isinstance(key, str | int) and not isinstance(key, bool)):
            raise ParameterError(
                f"The 'key' parameter of {type(self).__name__} must be the name of a field. Got {key!r} instead."
            )
        validate(
            type(self).__name__,
            {"most": Integer(1), "max_keys": AnyOf(None, Integer(1))},
            {"most": most, "max_keys": max_keys},
        )
        self.model = model
        self.key = key
        self.most = most
        self.max_keys = max_keys
        self._blank: Any = make_learner(model)
        if not isinstance(self._blank, VaryingLearner):
            raise ParameterError(
                f"{type(self).__name__} holds learners of varifold, each of which a file can hold; "
                f"{type(self._blank).__name__} is none"
            )
        if self._blank._task != self._task:
            held, (given, other) = _KINDS[self._task][0], _KINDS[self._blank._task]
            raise ParameterError(
                f"{type(self).__name__} holds {held}s; {type(self._blank).__name__} is a {given}: take {other}"
            )
        self._known: OrderedDict[Key, None] = OrderedDict()
        self._here: OrderedDict[Key, VaryingLearner] = OrderedDict()
        self._spill = SpillFile()
        self._lock = threading.RLock()
        self.reading: Mapping[str, Any] = {}
        self._labels: dict[Any, None] = {}
        self._steps = 0

    # ------------------------------------------------------------------ keys

    @property
    def keys(self) -> list[Key]:
        """Keys learned so far, in the order of their first instance; with `max_keys`, in that of their last one."""
        return list(self._known)

    @exclusive
    def learner(self, key: Key) -> VaryingLearner | None:
        """Return the learner of a key, None before the key was learned."""
        learner = self._here.get(key)
        if learner is not None:
            self._here.move_to_end(key)
            return learner
        if key not in self._known:
            return None
        back = self._decoded(self._spill.read(key))
        self._free_memory()
        self._here[key] = back
        self._spill.forget(key)
        return back

    def _free_memory(self) -> None:
        """Move the least recently used learners to disk until memory has capacity for one more.

        A learner that no file can hold, such as one with a label of another type, stays in memory.
        """
        for key in list(self._here):
            if len(self._here) < self.most:
                return
            self._move_to_disk(key)

    def _move_to_disk(self, key: Key) -> bool:
        try:
            data = self._here[key].to_bytes()
        except ModelFileError:
            return False
        self._spill.put(key, data)
        del self._here[key]
        return True

    @exclusive
    def spill(self, size: int) -> int:
        """Move least recently used learners, but not the last used one, to disk until `size` bytes are free.

        Return the bytes that were released.
        """
        released = 0
        for key in list(self._here)[:-1]:
            if released >= size:
                break
            held = sum(self._here[key].state_bytes().values())
            released += held if self._move_to_disk(key) else 0
        return released

    def disk_bytes(self, key: Key) -> int:
        """Return the size of a key's learner on disk, which is loaded for its next instance; 0 if it is not there."""
        return 0 if key in self._here else self._spill.size_of(key)

    def holds(self, key: Key) -> bool:
        """Return whether a key's learner is in memory."""
        return key in self._here

    def in_memory(self) -> list[VaryingLearner]:
        """Return the learners that are in memory, the least recently used first."""
        return list(self._here.values())

    def _decoded(self, data: bytes) -> VaryingLearner:
        learner: VaryingLearner = type(self._blank).from_bytes(data)
        return learner

    def _split(self, x: Mapping[Any, Any]) -> tuple[Key, dict[Any, Any]]:
        if not isinstance(x, Mapping) and not hasattr(x, "keys"):
            raise DataError(
                f"the instance for one learner per {self.key!r} is of type {type(x).__name__}; pass a mapping of "
                f"feature names to values with the key among them, such as {{{self.key!r}: 'a', 'load': 1.5}}"
            )
        key = x.get(self.key)
        if isinstance(key, np.integer):
            key = int(key)
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise FeatureValueError(
                f"the key {self.key!r} is {key!r} in an instance for one learner per key; give a str or an int"
            )
        if type(key) is not str:
            key = plain_label(key)  # a subclass may compare or hash otherwise; an int may be too long for a file
        return key, {name: value for name, value in x.items() if name != self.key}

    # ------------------------------------------------------------------ one instance

    @exclusive
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0, memo: bytes | None = None) -> None:
        """Learn one instance and its label or target with the learner of its key; make one for a new key.

        `memo` is what `memo_one` returned when the instance was predicted.
        """
        if self._learn(x, y, w, memo) and not self._numeric and not is_missing(y):
            self._labels.setdefault(plain_label(y))

    def _learn(self, x: Mapping[Any, Any], *truth: Any) -> bool:
        """Learn one instance with the learner of its key; return whether it counts as a step."""
        key, rest = self._split(x)
        known = self.learner(key)
        if known is None:
            self._free_memory()
        learner: Any = self._blank.clone() if known is None else known
        before = learner.steps
        learner.learn_one(rest, *truth)
        self._steps += learner.steps - before
        if learner.steps == before:
            return False
        if known is None:
            self._known[key] = None
            self._here[key] = learner
        if self.max_keys is not None:
            self._known.move_to_end(key)
            if len(self._known) > self.max_keys:
                self._forget(next(iter(self._known)))
        return True

    def _forget(self, key: Key) -> None:
        """Drop a key and its learner."""
        if self._here.pop(key, None) is None:
            self._spill.forget(key)
        del self._known[key]

    def _knows(self, column: Any) -> bool:
        """Return whether this is the key, or a column that a learner in memory learned."""
        return column == self.key or any(learner._knows(column) for learner in self._here.values())

    def _check_one(self, x: Mapping[Any, Any], y: Any = None) -> None:
        """Raise what `learn_one` would raise for this instance, and change nothing. y is None for an unknown label."""
        learner, rest = self._for(x)
        learner._check_one(rest, y)

    def _for(self, x: Mapping[Any, Any]) -> tuple[Any, dict[Any, Any]]:
        """Return the learner of an instance's key, a new one for a new key, and the instance without the key."""
        key, rest = self._split(x)
        return self.learner(key) or self._blank, rest

    def predict_one(self, x: Mapping[Any, Any]) -> Any:
        """Predict with the learner of the key; None or 0 before the key was learned. Changes nothing."""
        learner, rest = self._for(x)
        return learner.predict_one(rest)

    # ------------------------------------------------------------------ many instances

    @exclusive
    def learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> None:
        """Learn instances in order: dicts, a Block (which holds labels or targets), a frame, a matrix or an array.

        The state afterwards is that of `learn_one` on each. All instances are checked before anything is learned.
        """
        if y is None and not isinstance(X, Block):
            what = "target" if self._numeric else "label"
            raise DataError(f"y is missing; pass a {what} per instance, None where it is not known")
        warn_texts(X, self._knows)
        y = frames.checked_column(y)
        if isinstance(X, list | tuple) and y is not None and w is None:
            rows, targets = X, list(y)
            if len(rows) != len(targets):
                raise DataError(f"{len(targets)} labels or targets for {len(rows)} instances; give one for each")
            weights = [1.0] * len(rows)
        else:
            block = to_block(X, y, w, numeric=self._numeric)
            rows, targets = list(block.rows()), self._targets(block)
            weights = [1.0] * len(rows) if block.weights is None else block.weights.tolist()
        self._check_rows(rows, targets, weights)
        for x, target, weight in zip(rows, targets, weights, strict=False):
            self.learn_one(x, target, weight)

    def _check_rows(self, rows: Iterable[Mapping[Any, Any]], targets: Iterable[Any], weights: Iterable[float]) -> None:
        """Raise what learning the rows one by one would raise, with the number of the row.

        A name that clashes with one of a row without a label is rejected, too, as in a block.
        """
        without_label = self._task == "detection" or learns_unlabelled(self._blank)
        names: defaultdict[Key, Vocabulary] = defaultdict(Vocabulary)  # those of the rows so far
        order = OrderedDict(() if self.max_keys is None else self._known)
        forgotten: set[Key] = set()
        for i, (x, target, weight) in enumerate(zip(rows, targets, weights, strict=False)):
            try:
                key, rest = self._split(x)
                learner: Any = self._blank if key in forgotten else self.learner(key) or self._blank
                learner._check_one(rest, None if is_missing(target) else target)
                _add_names(names[key], rest)
            except VarifoldError as error:
                raise type(error)(f"instance {i}: {error}") from error
            if self.max_keys is None or weight == 0.0 or (is_missing(target) and not without_label):
                continue
            order[key] = None
            order.move_to_end(key)
            if len(order) > self.max_keys:
                oldest, _ = order.popitem(last=False)
                forgotten.add(oldest)
                names.pop(oldest, None)

    def predict_many(self, X: Any) -> Any:
        """Return what `predict_one` returns for each instance: a Series or an Array for a frame, else a list."""
        return frames.label_column([self.predict_one(x) for x in instances(X)], X)

    def _targets(self, block: Block) -> Any:
        """Return the labels or numbers of a block's rows; None for each if it has none."""
        if not self._numeric:
            return block.y
        numbers = with_numbers(block).targets
        return [None] * len(block) if numbers is None else numbers.tolist()

    @exclusive
    def rename(self, names: Mapping[Key, Key]) -> None:
        """Rename features in every learner that knows them, as `VaryingLearner.rename` does.

        A name that no learner knows, or the field of the key, raises an error, and nothing changes.
        """
        if not isinstance(names, Mapping):
            raise DataError(f"rename takes a mapping {{old name: new name}}. Got a {type(names).__name__} instead.")
        if self.key in names or self.key in names.values():
            raise DataError(f"{self.key!r} holds the key of each instance; it is no feature that can be renamed")
        unknown = set(names)
        for _, learner in self.items():
            space = learner._engine.space
            space.renaming(dict(names), True)
            unknown -= {name for name in unknown if space.id_of(name) >= 0}
        if unknown:
            raise UnknownNameError(f"no learner knows a feature {sorted(unknown, key=str)[0]!r}")
        for key in self._known:
            if key in self._here:
                self._here[key]._rename(dict(names), partial=True)
                continue
            learner = self._decoded(self._spill.read(key))
            if learner._rename(dict(names), partial=True):
                self._spill.replace(key, learner.to_bytes())

    # ------------------------------------------------------------------ looking inside

    @property
    def coverages(self) -> tuple[float, ...]:
        """Coverages of intervals or sets, a parameter of each learner."""
        return tuple(self._blank.coverages)

    @property
    def steps(self) -> int:
        """Instances learned so far, by all learners."""
        return self._steps

    def items(self) -> Iterator[tuple[Key, VaryingLearner]]:
        """Yield every key with its learner, in the order of their first instance; what is on disk stays there."""
        for key in list(self._known):
            yield key, self._seen_in_place(key)

    @exclusive
    def _seen_in_place(self, key: Key) -> VaryingLearner:
        """Return the learner of a known key; one that is on disk is copied and stays there."""
        here = self._here.get(key)
        return here if here is not None else self._decoded(self._spill.read(key))

    def open_files(self) -> list[int]:
        """Return the file descriptors that a forked copy of this learner needs."""
        return self._spill.open_files()

    # ------------------------------------------------------------------ keeping

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __copy__(self) -> Self:
        """Copy deeply: a copy that shared learners with the original would move them to disk."""
        return copy.deepcopy(self)

    def _header(self) -> dict[str, Any]:
        params = {"model": self._blank._header(), "key": self.key, "most": self.most, "max_keys": self.max_keys}
        labels = [files.pack_label(y) for y in self._labels]
        return {"method": self._method, "params": params, "labels": labels, "steps": self._steps}

    @exclusive
    def _content(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return all learners as files, in the order of `keys`."""
        parts = [self._here[k].to_bytes() if k in self._here else self._spill.read(k) for k in self._known]
        return self._header(), {**files.pack_names(list(self._known)), **pack_learners(parts)}

    @classmethod
    def _from_content(cls, header: Mapping[str, Any], arrays: files.Arrays) -> Self:
        model = header["params"]["model"]
        made = cls(**unpack_params({**header["params"], "model": {"learner": model}}))
        made._labels = dict.fromkeys(files.unpack_label(y) for y in header["labels"])
        made._steps = int(header["steps"])
        for key, part in zip(files.unpack_names(arrays), unpack_learners(arrays), strict=True):
            if key is None:
                raise ValueError("a key is missing")
            made._known[key] = None
            if len(made._here) < min(made.most, _DECODED):
                made._here[key] = made._decoded(part)
            else:
                of_key = files.decode_bytes(part)[0]
                if of_key["method"] != model["method"]:
                    raise ValueError(f"the learner of {key!r} is a {of_key['method']!r}")
                made._spill.put(key, part)
        return made


def _add_names(names: Vocabulary, x: Mapping[Any, Any]) -> None:
    """Add the features of an instance; raise an error for one that is a feature here and an indicator there."""
    for name, value in x.items():
        try:
            if isinstance(value, str):
                names.add_level(name, str.__str__(value))
            elif not is_missing(value):
                names.add(name)
        except FeatureNameError as error:
            shown = f"{name}={value}" if isinstance(value, str) else name
            raise FeatureNameError(
                f"feature {shown!r} is both a feature and the indicator of a string value; rename one of the two"
            ) from error


def instances(X: Any) -> Iterable[Mapping[Any, Any]]:
    """Return the rows of anything that holds instances, as mappings."""
    return X if isinstance(X, list | tuple) else to_block(X).rows()


class KeyedPredictor(KeyedLearner):
    """Learners of labels or numbers by key."""

    @property
    def learns_unlabelled(self) -> bool:
        """Whether the learners learn from instances without a label or target."""
        return learns_unlabelled(self._blank)

    def memo_one(self, x: Mapping[Any, Any]) -> bytes:
        """Return the memo of the prediction of the key's learner, see `VaryingClassifier.memo_one`."""
        learner, rest = self._for(x)
        memo: bytes = learner.memo_one(rest)
        return memo

    def memo_fits(self, x: Mapping[Any, Any], memo: bytes) -> bool:
        """Return whether the key's learner accepts the memo of an instance."""
        learner, rest = self._for(x)
        fits: bool = learner.memo_fits(rest, memo)
        return fits

    def _run_rows(
        self,
        block: Block,
        schedule: np.ndarray[Any, Any] | None,
        targets: Any,
        predict: Callable[[int], None],
        memos: list[bytes | None] | None,
    ) -> None:
        """Learn and predict the rows of a block by a schedule; without one each row is predicted, then learned."""
        rows, n = list(block.rows()), len(block)
        weights = np.ones(n) if block.weights is None else block.weights
        schedule = checked_schedule(schedule)
        if schedule is None:
            schedule = np.repeat(np.arange(1, n + 1), 2)
            schedule[1::2] *= -1
        for event in checked_steps(block, schedule).tolist():
            i = (abs(event) - 1) % n
            if event < -n:
                self.learn_one(rows[i], None, float(weights[i]))
            elif event > 0:
                predict(i)
                if memos is not None:
                    memos[i] = self.memo_one(rows[i])
            else:
                self.learn_one(rows[i], targets[i], float(weights[i]), None if memos is None else memos[i])
