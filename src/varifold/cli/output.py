"""Print tables, JSON and CSV on standard output."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_CONTROL = [*range(32), 127, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_VISIBLE = {code: repr(chr(code))[1:-1] for code in _CONTROL if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Escape control characters: names in data and model files could otherwise send commands to the terminal."""
    return text.translate(_VISIBLE)


class VisibleOutput:
    """Standard output on a terminal, with control characters escaped; what is redirected is written unchanged."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(visible(text))

    def isatty(self) -> bool:
        """Return False, so that no library adds colours."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_json(found: Any) -> None:
    """Print one JSON document; NaN becomes null."""
    print(json.dumps(_plain(found), indent=2, ensure_ascii=False, default=str))


def _plain(found: Any) -> Any:
    if isinstance(found, dict):
        return {str(k): _plain(v) for k, v in found.items()}
    if isinstance(found, list | tuple):
        return [_plain(v) for v in found]
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return found


def print_csv(rows: Sequence[dict[str, Any]]) -> None:
    """Print rows, which all have the first one's keys, as CSV."""
    writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Align columns with spaces; the first `left` to the left, the others to the right."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    lines = [
        "  ".join(c.ljust(w) if j < left else c.rjust(w) for j, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]
    rule = "  ".join("-" * w for w in widths)
    return "\n".join(line.rstrip() for line in [lines[0], rule, *lines[1:]])


def number(value: float, digits: int = 4) -> str:
    """Format a metric with fixed digits; NaN as a dash."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def probability(value: float, digits: int) -> str:
    """Format a probability; one that would be rounded to 0 or 1 is shown as a bound: 0.9988 is ``> 0.99``."""
    text = f"{value:.{digits}f}"
    if float(text) == 1.0 and value < 1.0:
        return f"> {1.0 - 10.0**-digits:.{digits}f}"
    if float(text) == 0.0 and value > 0.0:
        return f"< {10.0**-digits:.{digits}f}"
    return text


def named(name: Any, width: int = 40) -> str:
    """Cut the name of a feature to a width; quote an empty or blank one."""
    text = str(name)
    return shorten(text, width) if text.strip() else f'"{text}"'


def shorten(text: str, width: int) -> str:
    """Cut a text to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"
