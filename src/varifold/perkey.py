"""PerKey: one learner per value of a field, such as one per device, in bounded memory."""

from __future__ import annotations

import copy
import errno
import os
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from river import base as river_base

from varifold import vote
from varifold._engine.vocabulary import plain_label
from varifold.base import Block, files
from varifold.base.classifier import VaryingClassifier
from varifold.base.learner import VaryingLearner, is_regressor
from varifold.base.nested import make_learner, unpack_params
from varifold.base.registry import models
from varifold.errors import DataError, FeatureValueError, ModelFileError, ParameterError, UnknownNameError

Key = str | int
METHOD = "perkey"


class PerKey(river_base.Classifier):
    """One learner per value of a field; each sees only the instances of its key, without the field.

    A learner is made when its key is first learned. Beyond a bound the least recently used ones are kept on disk, in
    a temporary file that ends with the process, and come back when their key does; where they are never shows in an
    answer. `save` writes all of them to one file. When the disk is full, the call raises OSError and nothing is
    learned or lost.

    Parameters
    ----------
    model
        A learner that is copied for each key as it is before learning, or the spelling of one, such as ``"arow:r=1"``.
    key
        The field that holds the key, a str or an int.
    most
        Most learners in memory.

    Examples
    --------
    >>> from varifold import AROW, PerKey
    >>> model = PerKey(AROW(), key="device")
    >>> for step in range(20):
    ...     model.learn_one({"device": "a", "load": step % 2}, "high" if step % 2 else "low")
    ...     model.learn_one({"device": "b", "load": step % 2}, "low" if step % 2 else "high")
    >>> [model.predict_one({"device": d, "load": 1}) for d in ("a", "b")]
    ['high', 'low']
    >>> model.keys
    ['a', 'b']

    """

    def __init__(self, model: Any, key: Key = "key", most: int = 1_000) -> None:
        if not (isinstance(key, str | int) and not isinstance(key, bool)):
            raise ParameterError(f"The 'key' parameter of PerKey must be the name of a field. Got {key!r} instead.")
        if not (isinstance(most, int) and most >= 1):
            raise ParameterError(f"The 'most' parameter of PerKey must be an int >= 1. Got {most!r} instead.")
        self.model = model
        self.key = key
        self.most = most
        self._blank: VaryingClassifier = make_learner(model)
        if is_regressor(self._blank):
            raise ParameterError(
                f"PerKey holds classifiers; {type(self._blank).__name__} is a regressor: make one per key yourself"
            )
        self._known: dict[Key, None] = {}
        self._here: OrderedDict[Key, VaryingClassifier] = OrderedDict()
        self._shelf = _Shelf()
        self.reading: Mapping[str, Any] = {}
        self._labels: dict[Any, None] = {}
        self._steps = 0

    # ------------------------------------------------------------------ keys

    @property
    def keys(self) -> list[Key]:
        """Every key learned, in order of first sight."""
        return list(self._known)

    def learner(self, key: Key) -> VaryingClassifier | None:
        """The learner of a key, None before the key was learned."""
        found = self._here.get(key)
        if found is not None:
            self._here.move_to_end(key)
            return found
        if key not in self._known:
            return None
        back = self._decoded(self._shelf.read(key))
        self._make_room()
        self._here[key] = back
        self._shelf.forget(key)
        return back

    def _make_room(self) -> None:
        """Room in memory for one more learner; a learner leaves memory only once it is on disk."""
        while len(self._here) >= self.most:
            oldest, learner = next(iter(self._here.items()))
            self._shelf.put(oldest, learner.to_bytes())
            del self._here[oldest]

    def _decoded(self, data: bytes) -> VaryingClassifier:
        return type(self._blank).from_bytes(data)

    def _split(self, x: Mapping[Any, Any]) -> tuple[Key, dict[Any, Any]]:
        if not isinstance(x, Mapping) and not hasattr(x, "keys"):
            raise DataError(
                f"the instance for one learner per {self.key!r} is of type {type(x).__name__}; pass a mapping of "
                f"feature names to values with the key among them, such as {{{self.key!r}: 'a', 'load': 1.5}}"
            )
        key = x.get(self.key)
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise FeatureValueError(
                f"the key {self.key!r} is {key!r} in an instance for one learner per key; give a str or an int"
            )
        return key, {name: value for name, value in x.items() if name != self.key}

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Mapping[Any, Any], y: Hashable, w: float = 1.0) -> None:
        """Learn one labelled instance with the learner of its key; a new key's learner is made now."""
        key, rest = self._split(x)
        known = self.learner(key)
        if known is None:
            self._make_room()
        learner = self._blank.clone() if known is None else known
        before = learner.steps
        learner.learn_one(rest, y, w)
        self._steps += learner.steps - before
        if learner.steps != before:
            self._labels.setdefault(plain_label(y))
        if known is None:
            self._known[key] = None
            self._here[key] = learner

    def _check_one(self, x: Mapping[Any, Any], y: Hashable = None) -> None:
        """Raise what `learn_one` would raise for this instance; changes nothing. None: the label is not known yet."""
        key, rest = self._split(x)
        (self.learner(key) or self._blank)._check_one(rest, y)

    def predict_one(self, x: Mapping[Any, Any]) -> Any:  # type: ignore[override]
        """What the learner of the key says; None before the key was learned. Changes nothing."""
        key, rest = self._split(x)
        return (self.learner(key) or self._blank).predict_one(rest)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Probability by label; empty before the key was learned. Changes nothing."""
        key, rest = self._split(x)
        return (self.learner(key) or self._blank).predict_proba_one(rest)

    def explain_one(self, x: Mapping[Any, Any], label: Hashable = None) -> dict[Any, float]:
        """What each feature adds to the score that the learner of the key gives a label."""
        key, rest = self._split(x)
        return (self.learner(key) or self._blank).explain_one(rest, label)

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Iterable[Mapping[Any, Any]], y: Iterable[Any]) -> None:
        """Learn instances in order."""
        for x, label in zip(X, y, strict=True):
            self.learn_one(x, label)

    def predict_many(self, X: Iterable[Mapping[Any, Any]]) -> list[Any]:
        """What `predict_one` gives for each instance."""
        return [self.predict_one(x) for x in X]

    def run_block(
        self, block: Block, schedule: np.ndarray[Any, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Predict and learn a block, for evaluation: indices into `classes` (-1: none yet) and probabilities.

        A schedule (int64: i + 1 predicts row i, -(i + 1) learns it) lets labels arrive late.
        """
        rows, targets, n = list(block.rows()), block.y, len(block)
        if schedule is None:
            schedule = np.repeat(np.arange(1, n + 1), 2)
            schedule[1::2] *= -1
        answers: list[Any] = [None] * n
        shares: list[dict[Any, float]] = [{}] * n
        for event in schedule.tolist():
            i = abs(event) - 1
            if event > 0:
                answers[i], shares[i] = self.predict_one(rows[i]), self.predict_proba_one(rows[i])
            else:
                self.learn_one(rows[i], targets[i], 1.0 if block.weights is None else float(block.weights[i]))
        index = {y: k for k, y in enumerate(self._labels)}
        codes = np.array([index.get(y, -1) for y in answers], dtype=np.int32)
        probabilities = np.zeros((n, max(1, len(index))))
        for i, share in enumerate(shares):
            for y, p in share.items():
                probabilities[i, index[y]] = p
        return codes, probabilities

    def rename(self, names: Mapping[Key, Key]) -> None:
        """Let features go on under new names in every learner that knows them, as `VaryingClassifier.rename` does.

        Names that no learner knows, and the field of the key, are refused, and nothing changes.
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
            learner = self._decoded(self._shelf.read(key))
            if learner._rename(dict(names), partial=True):
                self._shelf.replace(key, learner.to_bytes())

    # ------------------------------------------------------------------ looking inside

    @property
    def steps(self) -> int:
        """Instances learned so far, by all learners."""
        return self._steps

    @property
    def classes(self) -> list[Any]:
        """Labels of all learners, in order of first sight."""
        return list(self._labels)

    def items(self) -> Iterator[tuple[Key, VaryingClassifier]]:
        """Every key with its learner, in order of first sight; what is on disk stays there."""
        for key in self._known:
            here = self._here.get(key)
            yield key, here if here is not None else self._decoded(self._shelf.read(key))

    @property
    def _multiclass(self) -> bool:
        return True

    def open_files(self) -> list[int]:
        """File descriptors that a forked copy of this learner needs."""
        return self._shelf.open_files()

    # ------------------------------------------------------------------ keeping

    def __copy__(self) -> Self:
        """A copy shares nothing with its original, or each would move the other's learners."""
        return copy.deepcopy(self)

    def _header(self) -> dict[str, Any]:
        params = {"model": self._blank._header(), "key": self.key, "most": self.most}
        labels = [files.pack_label(y) for y in self._labels]
        header = {"method": METHOD, "params": params, "labels": labels, "steps": self._steps}
        return {**header, "reading": dict(self.reading)} if self.reading else header

    def to_bytes(self) -> bytes:
        """The content of the file that `save` would write: all learners, in order of their keys' first sight."""
        parts = [self._here[k].to_bytes() if k in self._here else self._shelf.read(k) for k in self._known]
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        state = np.frombuffer(b"".join(parts), dtype=np.uint8)
        arrays = {**files.pack_names(list(self._known)), "learners": state, "learners.offsets": offsets}
        return files.encode(self._header(), arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` encoded, checked as a file is. It continues as if it had never stopped."""
        return cls._restored(*files.decode_bytes(data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learners to exactly this path; on any error the file that was there stays."""
        files.write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote; it continues as if it had never stopped. Loading runs no code of the file."""
        return cls._restored(*files.read(path), path)

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: files.Arrays, source: files.Source) -> Self:
        if header["method"] != METHOD:
            raise ModelFileError(f"{source} holds a {header['method']!r}, not one learner per key; use varifold.load")
        try:
            return cls._filled(header, arrays)
        except files.MISFITS as error:
            raise ModelFileError(f"{source} does not hold whole learners by key: {error!r}") from error

    @classmethod
    def _filled(cls, header: Mapping[str, Any], arrays: files.Arrays) -> Self:
        params = header["params"]
        found = cls(
            models[params["model"]["method"]](**unpack_params(params["model"]["params"])),
            key=params["key"],
            most=params["most"],
        )
        found._labels = dict.fromkeys(files.unpack_label(y) for y in header["labels"])
        found._steps = int(header["steps"])
        found.reading = dict(header.get("reading", {}))
        data, ends = arrays["learners"].tobytes(), arrays["learners.offsets"].tolist()
        for i, key in enumerate(files.unpack_names(arrays)):
            if key is None:
                raise ValueError("a key is missing")
            part = data[ends[i] : ends[i + 1]]
            found._known[key] = None
            if len(found._here) < found.most:
                found._here[key] = found._decoded(part)
            else:
                found._shelf.put(key, part)
        return found


class _Shelf:
    """Bytes by key in one nameless temporary file; nothing is overwritten, and mostly dead files are copied.

    On an error everything that was kept stays. A copy or a pickle has the bytes, not the file.
    """

    _SLACK = 64 << 20

    def __init__(self) -> None:
        self._fd = -1
        self._where: dict[Key, tuple[int, int]] = {}
        self._end = 0
        self._live = 0

    def __getstate__(self) -> dict[Key, bytes]:
        return {key: self.read(key) for key in self._where}

    def __setstate__(self, held: dict[Key, bytes]) -> None:
        self.__init__()  # type: ignore[misc]
        for key, data in held.items():
            self.put(key, data)

    def put(self, key: Key, data: bytes) -> None:
        """Keep bytes under a key that has none."""
        if self._end > 2 * self._live + self._SLACK:
            self._compact()
        if self._fd < 0:
            fd, path = tempfile.mkstemp(prefix="varifold-")
            os.unlink(path)
            self._use(fd)
        if os.pwrite(self._fd, data, self._end) != len(data):
            raise OSError(errno.ENOSPC, "learners by key do not fit on the disk of the temporary folder")
        self._where[key] = (self._end, len(data))
        self._end += len(data)
        self._live += len(data)

    def replace(self, key: Key, data: bytes) -> None:
        """Keep other bytes under a key that has some; when the disk is full, the old ones stay."""
        length = self._where[key][1]
        self.put(key, data)
        self._live -= length

    def read(self, key: Key) -> bytes:
        """The bytes of a key."""
        start, size = self._where[key]
        return os.pread(self._fd, size, start)

    def forget(self, key: Key) -> None:
        """Keep nothing under this key any more."""
        self._live -= self._where.pop(key)[1]

    def open_files(self) -> list[int]:
        """The file descriptor in use, if any."""
        return [] if self._fd < 0 else [self._fd]

    def _use(self, fd: int) -> None:
        self._fd = fd
        self._close = weakref.finalize(self, os.close, fd)

    def _compact(self) -> None:
        """Copy what is alive to a new file, then leave the old one."""
        new = _Shelf()
        for key in self._where:
            new.put(key, self.read(key))
        self._close()
        self._fd, self._where, self._end, self._live = -1, new._where, new._end, new._live
        if new._fd >= 0:
            new._close.detach()
            self._use(new._fd)


def load(path: str | os.PathLike[str]) -> Any:
    """The learner in a model file: one of any registered method, one per key, or a vote."""
    return _opened(*files.read(path), path)


def from_bytes(data: bytes) -> Any:
    """The learner that `to_bytes` encoded: of any registered method, one per key, or a vote; checked like a file."""
    return _opened(*files.decode_bytes(data))


def _opened(header: dict[str, Any], arrays: files.Arrays, source: files.Source) -> Any:
    composites: dict[str, Any] = {METHOD: PerKey, vote.METHOD: vote.Vote}
    return composites.get(header["method"], VaryingLearner)._restored(header, arrays, source)
