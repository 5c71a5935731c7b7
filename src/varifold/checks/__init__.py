"""Properties that every learner must have, as functions that raise AssertionError when one is missing.

They hold for this library's learners and can be asked of anyone's: a check takes a learner, works on clones of it and
leaves it as it was. Checks of abilities a learner does not have (`learn_many`, `save`, ...) are not yielded for it.

>>> import varifold
>>> varifold.checks.check_learner(varifold.OLVF())
>>> [check.__name__ for check in varifold.checks.yield_checks(varifold.OLVF())][:3]
['check_cold_start', 'check_probabilities', 'check_single_class']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from varifold.checks import answering, doors, spaces

__all__ = ["check_learner", "yield_checks"]

Check = Callable[[Any], None]

ALWAYS: tuple[Check, ...] = (
    answering.check_cold_start,
    answering.check_probabilities,
    answering.check_single_class,
    answering.check_empty_instance,
    answering.check_predict_is_pure,
    answering.check_same_twice,
    answering.check_late_class,
    answering.check_weights,
    answering.check_labels,
    answering.check_delayed_labels,
    answering.check_answers_are_plain,
    spaces.check_key_order,
    spaces.check_hash_seed,
    spaces.check_changing_features,
    spaces.check_unknown_features,
    spaces.check_constant_feature,
    spaces.check_absent,
    spaces.check_zero_is_a_value,
    spaces.check_refuses,
    spaces.check_name_clash,
    spaces.check_extreme_values,
    spaces.check_finite_state,
    spaces.check_numpy_types,
    doors.check_copies,
)

WHERE_ABLE: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (answering.check_explanation, ("explain_one", "margins_one")),
    (spaces.check_features, ("features",)),
    (doors.check_many_is_one, ("learn_many",)),
    (doors.check_many_answers, ("learn_many", "predict_many", "predict_proba_many")),
    (doors.check_blocks, ("learn_many", "predict_learn_many")),
    (doors.check_schedule, ("run_block", "classes")),
    (doors.check_frames, ("learn_many",)),
    (doors.check_changing_columns, ("learn_many",)),
    (doors.check_saved, ("save", "load")),
)


def yield_checks(learner: Any) -> Iterator[Check]:
    """The checks that apply to a learner; call each with it."""
    yield from ALWAYS
    if getattr(getattr(learner, "traits", None), "uses_values", True):
        yield answering.check_learns
    for check, abilities in WHERE_ABLE:
        if all(hasattr(learner, ability) for ability in abilities):
            yield check
    if spaces.takes_bound(learner):
        yield spaces.check_bounded_memory


def check_learner(learner: Any) -> None:
    """Run every check that applies; the first that fails raises AssertionError."""
    for check in yield_checks(learner):
        check(learner)
