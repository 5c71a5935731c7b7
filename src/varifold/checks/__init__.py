"""Properties that every learner must have, as functions that raise AssertionError when one does not hold.

This library's learners have them, and the checks can be run on any other learner: a check works on clones of a learner
and does not change it. Checks of methods that a learner lacks (`run_block`, `save`, ...) are not yielded for it.

>>> import varifold
>>> varifold.checks.check_learner(varifold.OLVF())
>>> [check.__name__ for check in varifold.checks.yield_checks(varifold.OLVF())][:3]
['check_cold_start', 'check_probabilities', 'check_single_class']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from varifold.base.learner import is_detector, is_regressor
from varifold.checks import apis, detection, predictions, regression, spaces, uncertainty
from varifold.errors import ParameterError

__all__ = ["check_learner", "yield_checks"]

Check = Callable[[Any], None]
NEEDED = ("learn_one", "predict_one", "clone")

OF_CLASSIFIERS: tuple[Check, ...] = (
    predictions.check_cold_start,
    predictions.check_probabilities,
    predictions.check_single_class,
    predictions.check_empty_instance,
    predictions.check_late_class,
    predictions.check_labels,
    predictions.check_plain_predictions,
    predictions.check_learns,
)

OF_REGRESSORS: tuple[Check, ...] = (
    regression.check_cold_start,
    regression.check_plain_predictions,
    regression.check_empty_instance,
    regression.check_targets,
    regression.check_target_types,
    regression.check_constant_target,
    regression.check_units,
    regression.check_extreme_targets,
    regression.check_learns,
)

ALWAYS: tuple[Check, ...] = (
    predictions.check_predict_is_pure,
    predictions.check_same_twice,
    spaces.check_key_order,
    spaces.check_hash_seed,
    spaces.check_changing_features,
    spaces.check_unknown_features,
    spaces.check_constant_feature,
    spaces.check_absent,
    spaces.check_zero_is_a_value,
    spaces.check_rejects,
    spaces.check_name_clash,
    spaces.check_extreme_values,
    spaces.check_finite_state,
    spaces.check_numpy_types,
    apis.check_copies,
)
"""Checks of every learner; a detector gets them through `detection.of_detector`."""

OF_PREDICTORS: tuple[Check, ...] = (predictions.check_weights, predictions.check_delayed_labels)
"""Checks of every classifier and regressor."""

BLOCK_API = ("learn_many", "predict_learn_many")
"""A third party's `learn_many` alone may be river's, which accepts only frames of pandas."""

EXPLANATIONS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (predictions.check_explanation, ("explain_one", "margins_one")),
    (regression.check_explanation, ("explain_one", "features")),
)

WHERE_ABLE: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (spaces.check_features, ("features",)),
    (apis.check_many_is_one, BLOCK_API),
    (apis.check_predict_many, (*BLOCK_API, "predict_many")),
    (apis.check_blocks, BLOCK_API),
    (apis.check_schedule, ("run_block",)),
    (apis.check_memos, ("run_block", "memo_one")),
    (apis.check_unlabelled, ("run_block", "traits")),
    (apis.check_frames, BLOCK_API),
    (apis.check_changing_columns, BLOCK_API),
    (uncertainty.check_intervals, ("coverages", "predict_interval_one")),
    (uncertainty.check_sets, ("coverages", "predict_set_one")),
    (uncertainty.check_uncertain_apis, ("coverages", "predict_interval_many", *BLOCK_API)),
    (uncertainty.check_uncertain_apis, ("coverages", "predict_set_many", *BLOCK_API)),
    (apis.check_saved, ("save", "load")),
    (apis.check_bytes, ("to_bytes", "from_bytes")),
)

OF_DETECTORS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (detection.check_cold_start, ()),
    (detection.check_plain_scores, ()),
    (detection.check_score_is_pure, ()),
    (detection.check_detects, ()),
    (detection.check_explanation, ("explain_one",)),
    (detection.check_apis, ("score_learn_many",)),
    (detection.check_alarms, ("is_anomaly_one",)),
)
SHARED: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (spaces.check_features, ("features",)),
    (apis.check_many_is_one, ("score_learn_many",)),
    (apis.check_predict_many, ("score_many",)),
    (apis.check_frames, ("score_learn_many",)),
    (apis.check_changing_columns, ("score_learn_many",)),
    (apis.check_saved, ("save", "load")),
    (apis.check_bytes, ("to_bytes", "from_bytes")),
)
"""Checks of detectors, and checks of other learners that detectors pass as well, with the methods that each needs."""

FILES = (apis.check_saved, apis.check_bytes)


def yield_checks(learner: Any) -> Iterator[Check]:
    """Yield the checks that apply to a learner; call each with it."""
    if is_detector(learner) and not isinstance(learner, type):
        yield from _checks_of_detector(learner)
        return
    numeric = is_regressor(learner)
    needed = NEEDED if numeric else (*NEEDED, "predict_proba_one")
    missing = [call for call in needed if not callable(getattr(learner, call, None))]
    if missing or isinstance(learner, type):
        name = learner.__name__ if isinstance(learner, type) else type(learner).__name__
        lacking = " and no ".join(f"{call}()" for call in missing)
        problem = f"{name} is a class" if isinstance(learner, type) else f"{name} has no {lacking}"
        raise ParameterError(
            f"{problem}; checks need a learner whose class derives from river.base.Classifier, "
            "river.base.Regressor or river.base.AnomalyDetector"
        )
    yield from OF_REGRESSORS if numeric else OF_CLASSIFIERS
    yield from (*ALWAYS, *OF_PREDICTORS)
    for check, abilities in (EXPLANATIONS[numeric], *WHERE_ABLE):
        if check in FILES and not getattr(learner, "_saves", lambda: True)():
            continue  # a PythonRule without dump() and fill() is pickled instead
        if all(hasattr(learner, ability) for ability in abilities):
            yield check
    if getattr(getattr(learner, "traits", None), "uses_values", True):
        yield regression.check_string_columns if numeric else spaces.check_string_columns
    if spaces.has_max_features(learner):
        yield spaces.check_bounded_memory


def _checks_of_detector(detector: Any) -> Iterator[Check]:
    for check, abilities in OF_DETECTORS:
        if all(hasattr(detector, ability) for ability in abilities):
            yield check
    for check, abilities in (*((check, ()) for check in ALWAYS), *SHARED):
        if all(hasattr(detector, ability) for ability in abilities):
            yield detection.of_detector(check)
    if spaces.has_max_features(detector):
        yield detection.of_detector(spaces.check_bounded_memory)


def check_learner(learner: Any) -> None:
    """Run every check that applies; the first that fails raises AssertionError with its name and requirement."""
    for check in yield_checks(learner):
        requirement = (check.__doc__ or "").splitlines()[0]
        try:
            check(learner)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__} fails: {error} ({requirement})") from error
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
            raise AssertionError(f"{check.__name__} fails: the learner raised {raised} ({requirement})") from error
