"""Recognise labels that are unlikely to be classes, before a learner reserves memory for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

__all__ = ["FIRST_ROWS", "MOST_LABELS", "too_many_labels"]

MOST_LABELS = 50
"""With more different labels than this, most labels being different, they are unlikely to be classes."""
FIRST_ROWS = 500
"""Rows whose labels are counted."""


def too_many_labels(labels: Iterable[Any]) -> str | None:
    """Describe labels that are unlikely to be classes: over 50 different ones, more than half of the first rows."""
    first = list(itertools.islice(labels, FIRST_ROWS))
    different = list(dict.fromkeys(first))
    if len(different) <= MOST_LABELS or 2 * len(different) <= len(first):
        return None
    shown = ", ".join(map(repr, different[:3]))
    return f"{len(different)} different labels among the first {len(first)} rows, such as {shown}"
