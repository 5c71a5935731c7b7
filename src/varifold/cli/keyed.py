"""Model files with one learner per key: find the learner of a key."""

from __future__ import annotations

from typing import Any

from varifold.base import load
from varifold.base.nearest import nearest
from varifold.ensemble.per_key import KeyedLearner
from varifold.errors import ParameterError

_MOST_SHOWN = 10


def add_option(parser: Any) -> None:
    """Declare --key-value."""
    parser.add_argument(
        "--key-value", metavar="KEY", help="key of the learner, in a file with one learner per key (`run --key`)"
    )


def field_of(learner: Any) -> str | None:
    """Return the key column of a learner per key; None for any other learner."""
    key = getattr(learner, "key", None)
    return None if key is None else str(key)


def open_model(path: str, wanted: str | None) -> Any:
    """Load the learner in a file: that of the given key, or all of them if no key is given."""
    found = load(path)
    if wanted is None:
        return found
    if not isinstance(found, KeyedLearner):
        raise ParameterError(f"--key-value {wanted}: {path} has a single learner, not one per key")
    return _of_key(found, wanted, path)


def learner_for(learner: Any, x: dict[Any, Any], wanted: str | None, path: str) -> Any:
    """Return the learner for an instance: of the given key, or of the key in the instance, which is removed."""
    if not isinstance(learner, KeyedLearner):
        if wanted is not None:
            raise ParameterError(f"--key-value {wanted}: {path} has a single learner, not one per key")
        return learner
    given = x.pop(learner.key, None)
    key = wanted if wanted is not None else given
    if key is None:
        shown = ", ".join(map(str, learner.keys[:_MOST_SHOWN]))
        more = f" and {len(learner.keys) - _MOST_SHOWN:,} more" if len(learner.keys) > _MOST_SHOWN else ""
        raise ParameterError(
            f"{path} has one learner per {learner.key!r}; name one with --key-value, or put {learner.key!r} in the "
            f"row. Known: {shown}{more}"
        )
    return _of_key(learner, str(int(key)) if isinstance(key, float) and key.is_integer() else str(key), path)


def _of_key(learner: KeyedLearner, text: str, path: str) -> Any:
    """Return the learner of the key that a text spells."""
    key = next((key for key in learner.keys if str(key) == text), None)
    if key is None:
        raise ParameterError(
            f"{path} has no learner for {learner.key!r} = {text!r}{nearest(text, map(str, learner.keys))}"
        )
    return learner.learner(key)
