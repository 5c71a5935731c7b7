"""Counts with their nouns, for messages."""

from __future__ import annotations

__all__ = ["plural"]


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: 1 cell, 2,000 cells."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
