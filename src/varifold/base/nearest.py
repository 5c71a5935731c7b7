"""Suggest corrections of misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a phrase like ``; did you mean arow?`` with the closest names, ignoring case; empty if none is close."""
    folded: dict[str, str] = {}
    for known in names:
        folded.setdefault(known.casefold(), known)
    close = [folded[match] for match in difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)]
    return f"; did you mean {' or '.join(close)}?" if close else ""
