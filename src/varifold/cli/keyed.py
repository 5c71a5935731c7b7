"""Model files with one learner per key: which keys there are, and the learner of one."""

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
        "--key-value", metavar="KEY", help="whose learner, of a file with one learner per key (`run --key`)"
    )


def field_of(learner: Any) -> str | None:
    """The column that holds the key, of one learner per key; None of any other learner."""
    key = getattr(learner, "key", None)
    return None if key is None else str(key)


def open_model(path: str, wanted: str | None) -> Any:
    """The learner in a file, that of the key wanted where there is one per key; all of them if none is wanted."""
    found = load(path)
    if wanted is None:
        return found
    if not isinstance(found, KeyedLearner):
        raise ParameterError(f"--key-value {wanted}: {path} holds one learner for all, not one per key")
    return _of_key(found, wanted, path)


def learner_for(learner: Any, x: dict[Any, Any], wanted: str | None, path: str) -> Any:
    """The learner that answers an instance: of the key wanted, or of the key in the instance, which is taken out."""
    if not isinstance(learner, KeyedLearner):
        if wanted is not None:
            raise ParameterError(f"--key-value {wanted}: {path} holds one learner for all, not one per key")
        return learner
    given = x.pop(learner.key, None)
    key = wanted if wanted is not None else given
    if key is None:
        shown = ", ".join(map(str, learner.keys[:_MOST_SHOWN]))
        more = f" and {len(learner.keys) - _MOST_SHOWN:,} more" if len(learner.keys) > _MOST_SHOWN else ""
        raise ParameterError(
            f"{path} holds one learner per {learner.key!r}; name one with --key-value, or give {learner.key!r} in the "
            f"row. Known: {shown}{more}"
        )
    return _of_key(learner, str(int(key)) if isinstance(key, float) and key.is_integer() else str(key), path)


def _of_key(learner: KeyedLearner, text: str, path: str) -> Any:
    """The learner of the key that a text spells."""
    key = next((key for key in learner.keys if str(key) == text), None)
    if key is None:
        raise ParameterError(
            f"{path} has no learner for {learner.key!r} = {text!r}{nearest(text, map(str, learner.keys))}"
        )
    return learner.learner(key)
