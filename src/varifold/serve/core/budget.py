"""Budgets of memory: per model and for all models of a server.

The engine reserves all memory for a change before it changes anything. While a model learns, the engine's allocator has
an allowance: a change that needs more fails in that step, so it is rejected and never stored. The allowance is what the
budgets leave. Released memory is not seen by the allocator, and of names it is not known whether they are new, so the
count is an upper bound. When half of what was left is counted, or a change does not fit, the learners for which most
was counted are measured: one that learns nothing now may have released the memory that another needs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from varifold._numeric.memory import allow, was_denied
from varifold.ensemble.per_key import KeyedLearner
from varifold.ensemble.vote import Vote
from varifold.ensemble.vote_detector import VoteDetector
from varifold.errors import VarifoldError
from varifold.serve.core.errors import BudgetError

T = TypeVar("T")
_CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_SHARE = 0.75
"""Share of the machine's memory that learners may use by default."""
_NAME = 56
"""Bytes of a name in addition to its characters."""
_LEARNER = 8 << 10
"""Bytes of a learner's objects in addition to its arrays."""
_PARTS = (50, 25, 12, 6, 3, 1)
"""Parts of a model's budget to free, one after another, by moving learners to disk."""
_LARGE = 64 << 10
"""Bytes from which one instance must fit into the budget, whether its names are new or not."""


def default_memory() -> int:
    """Return three quarters of the memory of this machine or container, in bytes."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP:
        if path.exists() and (text := path.read_text().strip()).isdigit():
            limits.append(int(text))
    return int(_SHARE * min(limits))


class ServerBudget:
    """Bytes for the learners of all models, and a quarter as much for instances that wait and for ids.

    `most_per_model` bounds each learner.
    """

    def __init__(self, most: int | None = None, most_per_model: int | None = None) -> None:
        self.most = default_memory() if most is None else most
        self.most_per_model = min(self.most, self.most if most_per_model is None else most_per_model)
        self.used = 0
        self.held = 0
        """Bytes of waiting instances and ids."""
        self.models: weakref.WeakSet[ModelBudget] = weakref.WeakSet()
        self._counted = 0
        """Bytes counted since the learners were measured."""
        self._most_counted = self.most // 2

    def count(self, size: int) -> None:
        """Count bytes that a learner uses; measure if much was counted."""
        self.used += size
        self._counted += size
        if self._counted > self._most_counted:
            self.measure()

    def measure(self) -> None:
        """Measure the learners of the models for which most was counted."""
        least = self._counted // (2 * max(1, len(self.models)))
        for model in self.models:
            if model.counted > least:
                model.measure()
        self.used = sum(model.used for model in self.models)
        self._counted = 0
        self._most_counted = max(self.most // 100, (self.most - self.used) // 2)

    def measure_again(self) -> bool:
        """Measure the learners if more than a little was counted; return whether they use less than counted."""
        before = self.used
        if self._counted > self.most_per_model // 100:
            self.measure()
        return self.used < before

    def make(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that makes a learner; raise an error if it does not fit into the budget of a model."""
        self.measure_again()
        left = max(0, min(self.most_per_model, self.most - self.used))
        allow(left)
        try:
            return function(*arguments)
        except MemoryError as error:
            if not was_denied():
                raise
            raise BudgetError(
                f"the learner needs more than the {shown(left)} that the server has left for it; --max-model-memory "
                "and --max-memory set the budgets"
            ) from error
        finally:
            allow(-1)


class Counted:
    """Bytes of instances that are learned within one allowance."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.size = 0

    def with_instance(self, x: Any, size: int) -> int:
        """Return the bytes after one more instance of `size` bytes, whose names may all be new."""
        return self.size + size + _NAME * len(x)


class ModelBudget:
    """Bytes that the learner of one model uses, as far as is known, and the calls that may use more."""

    def __init__(self, server: ServerBudget, name: str) -> None:
        self.server = server
        self.name = name
        self.used = 0
        self.held = 0
        self.counted = 0
        """Bytes counted since the learner was measured."""
        self._learner: Any = None
        server.models.add(self)

    def set_learner(self, learner: Any) -> None:
        """Count the memory of this learner."""
        self._learner = learner
        self.measure()

    def measure(self) -> None:
        """Measure the learner."""
        if self._learner is not None:
            self._set(learner_bytes(self._learner))

    def _set(self, used: int) -> None:
        self.server.used += used - self.used
        self.used = used
        self.counted = 0

    def _count(self, size: int) -> None:
        self.used += size
        self.counted += size
        self.server.count(size)

    @property
    def left(self) -> int:
        """Bytes that the budgets leave for this model."""
        server = self.server
        return max(0, min(server.most_per_model - self.used, server.most - server.used))

    def close(self) -> None:
        """Release the budget of a model that is deleted."""
        self._learner = None
        self._set(0)
        self.hold(0)

    def hold(self, held: int) -> None:
        """Set the bytes of the model's waiting instances and ids."""
        self.server.held += held - self.held
        self.held = held

    def check_held(self, size: int) -> None:
        """Raise an error if the instances and ids of all models, and another one, exceed their part of the budget."""
        server = self.server
        if server.held + size > server.most // 4:
            raise BudgetError(
                f"the instances that wait and the ids of all models use {shown(server.held)} of memory, and at most "
                f"{shown(server.most // 4)} may be used: a quarter of --max-memory; send labels, or set lower limits "
                "with --max-waiting and --max-ids"
            )

    def learn(self, learner: Any, x: Any, *truth: Any, size: int) -> None:
        """Learn an instance of `size` bytes within the budget; a rejected one leaves the learner unchanged.

        `truth` is its label and weight, if there are any. What the names could take counts as used until
        the learner is measured.
        """
        self._learner = learner
        size += _NAME * len(x)
        if isinstance(learner, KeyedLearner) and not learner.holds(x.get(learner.key)):
            size += _LEARNER
        if not self._fits(learner.learn_one, (x, *truth), size):
            self._make_space(learner, learner.learn_one, (x, *truth), size)

    @contextlib.contextmanager
    def learning(self) -> Iterator[Counted]:
        """Let a learner that is not by key learn instances, which are counted in what this yields."""
        counted = Counted(left := self.left)
        allow(left)
        try:
            yield counted
        finally:
            self._count(counted.size + left - allow(-1))

    def load(self, learner: KeyedLearner, key: Any) -> None:
        """Load the learner of a key within the budget if it is on disk."""
        stored = learner.disk_bytes(key)
        if stored and not self._fits(learner.learner, (key,), stored + _LEARNER):
            self._make_space(learner, learner.learner, (key,), stored + _LEARNER)

    def _make_space(self, learner: Any, function: Callable[..., Any], arguments: tuple[Any, ...], size: int) -> None:
        """Call a function that did not fit into the budget, once learners are measured or moved to disk."""
        if self.server.measure_again() and self._fits(function, arguments, size):
            return
        for part in _PARTS:  # a learner that is loaded from disk needs several times its size
            if not self._spill(learner, self.server.most_per_model // part):
                break
            if self._fits(function, arguments, size):
                return
        raise self._error()

    def _fits(self, function: Callable[..., Any], arguments: tuple[Any, ...], size: int) -> bool:
        """Call a function of the learner; return False, with nothing changed, if it needs more memory than is left."""
        left = self.left
        if size > _LARGE and size > left:
            return False
        allow(left)
        try:
            function(*arguments)
            return True
        except MemoryError:
            size = 0
            if was_denied():
                return False
            raise
        except VarifoldError:
            size = 0
            raise
        finally:
            self._count(size + left - allow(-1))

    def _spill(self, learner: Any, size: int) -> bool:
        """Move learners by key of some size to disk; return False if there are none."""
        most = self.server.most_per_model
        if not isinstance(learner, KeyedLearner):
            return False
        self.measure()
        if not learner.spill(max(size, _LARGE, self.used - most + most // 20)):
            return False
        self.measure()
        return True

    def _error(self) -> BudgetError:
        server = self.server
        return BudgetError(
            f"the model {self.name!r} uses {shown(self.used)} of memory and needs more for this instance than its "
            f"budget of {shown(server.most_per_model)} allows (all models: {shown(server.used)} of "
            f"{shown(server.most)}); it was not learned. max_features bounds the features of a learner, "
            "--max-model-memory and --max-memory set the budgets"
        )


def learner_bytes(learner: Any) -> int:
    """Return the bytes of a learner's state in memory, with its names."""
    if isinstance(learner, KeyedLearner):
        return sum(map(learner_bytes, learner.in_memory()))
    if isinstance(learner, Vote | VoteDetector):
        return sum(map(learner_bytes, learner.learners))
    arrays: int = sum(learner.state_bytes().values())
    return _LEARNER + arrays + sum(sys.getsizeof(name) for name in learner._engine.space.dump()[0])


def shown(size: int) -> str:
    """Write a number of bytes for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 10_240:
            return f"{size:,} {unit}"
        size //= 1024
    return f"{size:,} GiB"
