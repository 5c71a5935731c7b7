"""Recognise numbers that came as texts, as `csv.DictReader` and data frames of unusual files have them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from typing import Any

from varifold.errors import VarifoldWarning

__all__ = ["MOST", "are_numbers", "warn_of_numbers"]

MOST = 20
"""Number of different texts of a column that decide."""
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
