"""Warn about numbers that came as texts, as `csv.DictReader` and data frames of unusual files have them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from varifold.base.frames import is_frame, open_frame
from varifold.errors import VarifoldWarning

__all__ = ["MOST", "are_numbers", "warn_frame_texts", "warn_number_texts", "warn_of_numbers"]

MOST = 20
"""Number of different texts of a column that decide."""
_ROWS = 500
"""Rows of a frame that are looked at."""
_CONVERT = "convert the column to numbers (pandas.read_csv has decimal=',' and thousands='.'), or to categories"
_NUMBER = re.compile(r"(?=[-+\s]*[.,]?\d)\s*[-+]?(?:[1-9]\d{0,2}(?:[.,' ]\d{3})+|\d*)(?:[.,]\d+)?(?:[eE][-+]?\d+)?\s*")


def are_numbers(texts: Collection[str]) -> bool:
    """Return whether these different texts are numbers, and no codes.

    Whole numbers are codes if all have the same length, or one of them begins with 0.
    """
    if len(texts) < MOST or not all(map(_NUMBER.fullmatch, texts)):
        return False
    stripped = [text.strip() for text in texts]
    if not all(map(str.isdigit, stripped)):
        return True
    return len(set(map(len, stripped))) > 1 and not any(len(text) > 1 and text[0] == "0" for text in stripped)


def warn_of_numbers(name: Any, text: str, remedy: str) -> None:
    """Warn that the numbers of a column are texts."""
    warnings.warn(
        f"column {name!r} holds numbers as texts, such as {text!r}, and each is read as a separate category; {remedy}",
        VarifoldWarning,
        stacklevel=2,
    )


def warn_frame_texts(X: Any, known: Callable[[Any], bool]) -> None:
    """Warn about the columns of a data frame whose numbers are texts, except known ones; nothing if X is no frame."""
    if not is_frame(X):
        return
    import narwhals.stable.v1 as nw

    frame = open_frame(X)
    for name in frame.columns:
        series = frame.get_column(name)
        if series.dtype != nw.String or known(name):
            continue
        texts = [text for text in series.head(_ROWS).to_list() if isinstance(text, str) and text.strip()]
        texts = list(dict.fromkeys(texts))[:MOST]
        if are_numbers(texts):
            warn_of_numbers(name, texts[0], _CONVERT)


def warn_number_texts(rows: Iterable[Mapping[Any, Any]]) -> None:
    """Warn about the columns of dicts whose numbers are texts."""
    texts: dict[Any, dict[str, None]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str) and len(seen := texts.setdefault(name, {})) < MOST:
                seen[value] = None
    for name, seen in texts.items():
        if are_numbers(seen):
            warn_of_numbers(name, next(iter(seen)), "convert them, such as by float(text)")
