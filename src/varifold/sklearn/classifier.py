"""VarifoldClassifier: any classifier of the library as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from varifold.base.label_count import too_many_labels
from varifold.base.plural import plural
from varifold.errors import LabelError, ParameterError
from varifold.sklearn.estimator import VaryingEstimator, rows_of
from varifold.sklearn.extra import (
    ClassifierMixin,
    check_classification_targets,
    check_sample_weight,
    column_or_1d,
    compute_sample_weight,
)

SORTED_ROWS = 30
"""With this number of rows, sorted labels are not a coincidence."""


class VarifoldClassifier(ClassifierMixin, VaryingEstimator):  # type: ignore[misc]
    """A scikit-learn classifier whose columns are identified by name and may change from call to call.

    NaN, None and a missing column mean *absent*; each value of strings and categoricals becomes an indicator. No
    imputer, encoder or scaler is needed before it. `fit` starts a new learner and learns the permuted rows in one pass;
    `partial_fit` continues with more rows in their order, which may have other columns and labels.

    Parameters
    ----------
    model
        The learner: a text such as ``"auto"`` or ``"arow:r=1"`` (`varifold models` lists them), or a learner such as
        ``varifold.OLVF(C=0.1)``, which is copied without its state. Its parameters are set and searched as
        ``model__C``.
    omitted
        Meaning of the cells that a sparse matrix does not store: ``"absent"``, as everywhere in this library, or
        ``"zero"``, as in scikit-learn's own estimators (the matrix is then made dense).
    shuffle
        Whether `fit` permutes the rows first; False learns them in their order, as a stream. `partial_fit` always does.
    random_state
        Seed of that permutation.
    class_weight
        Weights of the labels, multiplied with those of the rows: label -> weight, other labels having 1, or
        ``"balanced"`` for weights inversely proportional to the labels' numbers of rows, which `partial_fit` cannot
        know.

    Attributes
    ----------
    model_
        The learner: `explain_one`, `features`, `save` and the rest of its methods.
    classes_
        Labels, sorted: those passed to `partial_fit` as `classes`, else those learned so far.
    n_features_in_, feature_names_in_
        Columns of the data learned last.

    Notes
    -----
    *Arrays* have no names: their columns are 0, 1, 2, ... or, after a data frame was learned, its columns by position,
    with scikit-learn's warning; their number cannot change. *Order matters*: the learners are for streams, and permuted
    rows, or a row of weight 2 instead of two rows, lead to another state. `varifold.sklearn.EXPECTED_FAILED_CHECKS`
    names the checks of `check_estimator` that fail for this reason.

    `predict` returns the learner's prediction, which may differ from the most probable class if the learner has a
    threshold or a bias to the majority class.

    Examples
    --------
    >>> import pandas as pd
    >>> from varifold.sklearn import VarifoldClassifier
    >>> clf = VarifoldClassifier("arow")
    >>> january = pd.DataFrame({"load": [1.0, 9.0, 2.0, 8.0], "fan": ["on", "off", None, "off"]})
    >>> february = pd.DataFrame({"load": [1.5, None], "heat": [20.0, 70.0]})
    >>> clf.fit(january, ["ok", "fault", "ok", "fault"]).partial_fit(february, ["ok", "fault"])
    VarifoldClassifier(model='arow')
    >>> clf.predict(pd.DataFrame({"heat": [65.0], "fan": ["off"]}))
    array(['fault'], dtype='<U5')

    """

    def __init__(
        self,
        model: Any = "auto",
        *,
        omitted: str = "absent",
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
    ) -> None:
        self.model = model
        self.omitted = omitted
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start again and learn all rows once, permuted or in their order (`shuffle`)."""
        X, names = self._read(X)
        labels = self._labels(X, y)
        _check_many(labels)
        learner = self._new_learner()
        if not self.shuffle:
            warn_if_sorted(labels)
        self._learn(learner, X, names, labels, self._weights(X, labels, sample_weight), self.shuffle)
        self.classes_ = np.unique(labels)
        self._declared = False
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue with more rows in their order; their columns may differ.

        `classes`, all labels that may occur, fixes the columns of `predict_proba` from the start. Without it labels are
        added to `classes_` as they occur.
        """
        X, names = self._read(X, getattr(self, "_columns", None))
        labels = self._labels(X, y)
        known = self._known_labels(labels, classes)
        if classes is None and not hasattr(self, "classes_"):
            _check_many(labels)
        if self.class_weight == "balanced":
            raise ParameterError(
                "class_weight='balanced' needs all rows, which partial_fit does not have; pass weights by label, such "
                "as {label: weight}"
            )
        weights = self._weights(X, labels, sample_weight)
        learner = self._continued()
        self._learn(learner, X, names, labels, weights, shuffle=False)
        self._declared = getattr(self, "_declared", False) or classes is not None
        self.classes_ = known
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of each row."""
        predicted, _ = self._outputs(X)
        return self.classes_[self._positions()[predicted]]  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each label, in the order of `classes_`; 0 for a label not learned yet."""
        _, learned = self._outputs(X)
        probabilities = np.zeros((len(learned), len(self.classes_)))
        probabilities[:, self._positions()] = learned
        return probabilities

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _positions(self) -> NDArray[np.int64]:
        """Return the position in `classes_` of each label of the learner."""
        position = {label: i for i, label in enumerate(self.classes_.tolist())}
        return np.array([position[label] for label in self.model_.classes], dtype=np.int64)

    def _labels(self, X: Any, y: Any) -> NDArray[Any]:
        """Return one label per row, as an array."""
        labels = self._targets(X, y)
        unknown = [i for i, label in enumerate(labels.tolist()) if label is None]
        if unknown:
            raise LabelError(
                f"y holds None in {plural(len(unknown), 'row')}, the first is {unknown[0]}; leave those rows out"
            )
        check_classification_targets(labels)
        return labels

    def _weights(self, X: Any, labels: NDArray[Any], sample_weight: Any) -> Any:
        """Return the weight of each row times that of its label; None if all are 1."""
        if self.class_weight is None:
            return sample_weight
        given = check_sample_weight(sample_weight, np.empty((rows_of(X), 1)), dtype=np.float64)
        return given * compute_sample_weight(self.class_weight, labels)

    def _known_labels(self, labels: NDArray[Any], classes: Any) -> NDArray[Any]:
        """Return the labels after this call; raise an error for undeclared labels and changed declarations."""
        before = getattr(self, "classes_", None)
        if classes is not None:
            given = np.unique(column_or_1d(classes))
            if before is not None and not np.array_equal(given, before):
                raise LabelError(
                    f"`classes={given.tolist()!r}` is not the same as on last call to partial_fit, was: "
                    f"{before.tolist()!r}"
                )
        elif before is None:
            return np.unique(labels)
        elif not self._declared:
            joined: NDArray[Any] = np.unique(np.concatenate([before, labels]))
            changed = sorted(set(labels.tolist()) - set(joined.tolist()), key=str)
            if changed:
                raise LabelError(
                    f"the label {changed[0]!r} is of another type than those before, {before.tolist()!r}; use labels "
                    "of one type"
                )
            return joined
        known: NDArray[Any] = before if classes is None and before is not None else given
        unknown = sorted(set(labels.tolist()) - set(known.tolist()), key=str)
        if unknown:
            raise LabelError(f"the label {unknown[0]!r} is not among the declared classes {known.tolist()!r}")
        return known


def _check_many(labels: NDArray[Any]) -> None:
    """Raise an error if most labels are different, before a learner reserves memory for each."""
    described = too_many_labels(labels.tolist())
    if described is not None:
        raise LabelError(
            f"{described}; VarifoldRegressor predicts numbers; partial_fit(X, y, classes=...) learns each as a class"
        )


def warn_if_sorted(labels: NDArray[Any]) -> None:
    """Warn if all rows of one label precede all rows of the next: a stream learner forgets the first ones."""
    changes = int((labels[1:] != labels[:-1]).sum())
    if len(labels) < SORTED_ROWS or changes == 0 or changes != len(np.unique(labels)) - 1:
        return
    warnings.warn(
        f"the {len(labels)} rows are sorted by their label, and are learned in their order; shuffle=True permutes them",
        UserWarning,
        stacklevel=3,
    )
