"""What stands for "no value" in rows and frames."""

from __future__ import annotations

from typing import Any

__all__ = ["is_missing"]


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        # pandas' NA and arrays have no truth value; NA is known by its type, since pandas need not be installed
        return type(value).__name__ == "NAType"
