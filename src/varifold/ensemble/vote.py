"""Vote: average the predictions of several learners, such as those of the parts of one stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from river import base as river_base

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import is_missing, plain_label
from varifold.base import files, frames
from varifold.base.blocks import learned_block, to_block
from varifold.base.classifier import VaryingClassifier
from varifold.base.saving import Saved, pack_learners, unpack_learners
from varifold.base.shares import share_of
from varifold.errors import FeatureNameError, ModelFileError, ParameterError

METHOD = "vote"


def checked_learners(owner: str, learners: Any, kind: str, fits: Callable[[Any], bool]) -> list[Any]:
    """Return the learners of an ensemble as a list; raise an error unless each fits and is there once."""
    rule = f"The 'learners' parameter of {owner} must be a list of {kind}, each one once."
    if not isinstance(learners, Iterable):
        raise ParameterError(f"{rule} Got a {type(learners).__name__} instead.")
    checked = list(learners)
    for learner in checked:
        if isinstance(learner, type) or not fits(learner):
            name = f"the class {learner.__name__}" if isinstance(learner, type) else f"a {type(learner).__name__}"
            raise ParameterError(f"{rule} Got {name} in it.")
    if not checked:
        raise ParameterError(f"{rule} Got none.")
    if len({id(learner) for learner in checked}) < len(checked):
        raise ParameterError(f"{rule} Got one of them twice.")
    return checked


class Vote(Saved, river_base.Classifier):
    """An ensemble that averages the probabilities of its learners.

    For learners that learned different parts of a stream and cannot be merged (see `varifold.merge`), or of different
    classes. A learner that has not learned any label does not vote. One learner, chosen by a hash of the instance's
    number, learns each instance, so that learning costs as much as with one, and predicting as much as with all.

    Parameters
    ----------
    learners
        At least one classifier; they are used as they are, not copied.

    Examples
    --------
    >>> from varifold import AROW, ORF3V, Vote
    >>> model = Vote([AROW(), ORF3V()])
    >>> for step in range(200):
    ...     model.learn_one({"load": step % 2}, "high" if step % 2 else "low")
    >>> model.predict_one({"load": 1}), model.predict_one({"load": 0})
    ('high', 'low')
    >>> sum(learner.steps for learner in model.learners)
    200

    """

    _task = "classification"

    def __init__(self, learners: Iterable[Any]) -> None:
        self.learners = checked_learners("Vote", learners, "classifiers", lambda one: hasattr(one, "predict_proba_one"))
        self.reading: Mapping[str, Any] = {}
        self._learned = 0
        self._labels: dict[Any, None] = {}
        for learner in self.learners:
            self._labels.update(dict.fromkeys(getattr(learner, "classes", [])))

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Mapping[Any, Any], y: Hashable, w: float = 1.0) -> None:
        """Learn one instance with one of the learners; one of weight 0, or whose label is None or NaN, is ignored."""
        if is_missing(y):
            self._check_one(x)
            return
        if isinstance(x, Mapping):
            self._reject_clash(x)
        learner = self.learners[share_of(self._learned, len(self.learners))]
        learner.learn_one(x, y, *(() if w == 1.0 else (w,)))  # some classifiers of river accept no weight
        if w > 0.0:
            self._labels.setdefault(plain_label(y))
            self._learned += 1

    def _check_one(self, x: Mapping[Any, Any], y: Hashable = None) -> None:
        """Raise what `learn_one` would raise for this instance, and change nothing. y is None for an unknown label."""
        if isinstance(x, Mapping):
            self._reject_clash(x)
        learner = self.learners[share_of(self._learned, len(self.learners))]
        if isinstance(learner, VaryingClassifier):
            learner._check_one(x, y)

    def _reject_clash(self, x: Mapping[Any, Any]) -> None:
        """Reject 'f=v' as a feature if another learner knows it as the value v of f, and vice versa."""
        for name, value in x.items():
            is_level = isinstance(value, str)
            if not is_level and not (isinstance(name, str) and "=" in name):
                continue
            full = f"{name}={value}" if is_level else name
            for learner in self.learners:
                if not isinstance(learner, VaryingClassifier):
                    continue
                space = learner._engine.space
                if full in space and (space.column_of(space.id_of(full)) != space.id_of(full)) != is_level:
                    raise FeatureNameError(
                        f"feature {full!r} at step {self._learned + 1:,} is both a feature and the "
                        "indicator of a string value; rename one of the two"
                    )

    def predict_one(self, x: Mapping[Any, Any]) -> Any:  # type: ignore[override]
        """Predict the most probable label; None before any label was learned. Changes nothing."""
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=probabilities.__getitem__) if probabilities else None

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Return the mean of the learners' probabilities; empty before any label was learned. Changes nothing."""
        return self._mean([learner.predict_proba_one(x) for learner in self.learners])

    def _mean(self, given: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
        voters = [probabilities for probabilities in given if probabilities]
        if not voters:
            return {}
        return {
            label: sum(probabilities.get(label, 0.0) for probabilities in voters) / len(voters)
            for label in self._labels
        }

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> None:
        """Learn instances in order; X is anything that `VaryingClassifier.learn_many` accepts."""
        for x, label, weight in self._labelled(learned_block(X, y, w, self._knows)):
            self.learn_one(x, label, weight)

    def _knows(self, name: Any) -> bool:
        return any(isinstance(learner, VaryingClassifier) and learner._knows(name) for learner in self.learners)

    def _labelled(self, block: Block) -> list[tuple[dict[Any, Any], Any, float]]:
        """Return instances, labels and weights; reject all of them if a name of one clashes."""
        weights = np.ones(len(block)) if block.weights is None else block.weights
        rows = list(zip(block.rows(), block.y, weights.tolist(), strict=True))
        for x, _, _ in rows:
            self._reject_clash(x)
        return rows

    def predict_many(self, X: Any) -> Any:
        """Return what `predict_one` returns for each instance, in the form of `VaryingClassifier.predict_many`."""
        frames.check_labels(self._labels, X)
        return frames.label_column([max(p, key=p.__getitem__) if p else None for p in self._probabilities(X)], X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return what `predict_proba_one` returns for each instance; for a frame, a frame with one column per label."""
        frames.check_columns(self._labels, X)
        probabilities = self._probabilities(X)
        if not frames.is_frame(X):
            return probabilities
        table = np.array([[p[label] for label in self._labels] for p in probabilities if p])
        return frames.probability_table(self.classes, table.reshape(len(probabilities), len(self._labels)), X)

    def _probabilities(self, X: Any) -> list[dict[Any, float]]:
        block = to_block(X)
        by_learner = []
        for learner in self.learners:
            if isinstance(learner, VaryingClassifier):
                by_learner.append(learner.predict_proba_many(block))
            else:
                by_learner.append([learner.predict_proba_one(x) for x in block.rows()])
        return [self._mean(given) for given in zip(*by_learner, strict=True)]

    def predict_learn_many(self, X: Any, y: Iterable[Any] | None = None, w: Iterable[float] | None = None) -> Any:
        """Predict each instance, then learn it; return the predictions in the form of `predict_many`."""
        block = learned_block(X, y, w, self._knows)
        frames.check_labels([*self._labels, *block.labels.values], X)
        predictions = []
        for x, label, weight in self._labelled(block):
            predictions.append(self.predict_one(x))
            self.learn_one(x, label, weight)
        return frames.label_column(predictions, X)

    # ------------------------------------------------------------------ looking inside

    @property
    def classes(self) -> list[Any]:
        """Labels of all learners, in the order in which they were first learned."""
        return list(self._labels)

    @property
    def steps(self) -> int:
        """Instances learned so far, by all learners that count them (river's do not)."""
        return sum(int(getattr(learner, "steps", 0)) for learner in self.learners)

    @property
    def _multiclass(self) -> bool:
        return True

    # ------------------------------------------------------------------ copies, files and bytes

    def _get_params(self) -> dict[str, Any]:
        return {"learners": [getattr(learner, "_header", learner._get_params)() for learner in self.learners]}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Make a vote of the given learners, or else of clones, which have learned nothing."""
        given = (new_params or {}).get("learners")
        return type(self)([learner.clone() for learner in self.learners] if given is None else given)

    def _header(self) -> dict[str, Any]:
        return {"method": METHOD, "params": {}}

    def _content(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return all learners as files, in their order."""
        for learner in self.learners:
            if not isinstance(learner, VaryingClassifier):
                raise ModelFileError(
                    f"this Vote holds a {type(learner).__name__}, which a model file cannot hold; pickle it instead"
                )
        labels = [files.pack_label(label) for label in self._labels]
        header = {**self._header(), "labels": labels, "learned": self._learned}
        return header, pack_learners([learner.to_bytes() for learner in self.learners])

    @classmethod
    def _from_content(cls, header: Mapping[str, Any], arrays: files.Arrays) -> Self:
        made = cls([VaryingClassifier.from_bytes(part) for part in unpack_learners(arrays)])
        made._learned = max(0, int(header["learned"]))
        made._labels = dict.fromkeys(files.unpack_label(label) for label in header["labels"])
        if made._labels.keys() != {label for learner in made.learners for label in learner.classes}:
            raise ValueError("its labels are not those of its learners")
        return made
