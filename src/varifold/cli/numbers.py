"""Numbers in options."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """Parse a whole number of 1 or more."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """Parse a whole number of 0 or more."""
    return _whole(text, 0)


def share(text: str) -> float:
    """Parse a number between 0 and 1."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, not {text!r}")
    return found


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, not {text!r}")
    return int(text)


def size(text: str) -> int:
    """Parse a number of bytes, such as 500M or 8G."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes, such as 500M or 8G")
    return int(digits) * factor
