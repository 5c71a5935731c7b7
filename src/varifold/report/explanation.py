"""Draw an explanation as bars: what each feature of one instance adds to a label's score."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from varifold.report.style import BLUE, GREY, INK, ORANGE, pyplot, quiet, set_title, write

_LONGEST = 28


def plot_explanation(
    parts: Sequence[tuple[Any, float]],
    x: Mapping[Any, Any],
    path: str | os.PathLike[str],
    title: str,
    most: int = 15,
    *,
    total: str = "score",
    label: bool = False,
) -> None:
    """Draw one bar per feature, largest first, with the instance's value; the last bar sums up the others.

    Parameters
    ----------
    parts
        (feature, what it adds to the score); they sum to the score.
    x
        The instance: its values are written next to the names.
    path, title
        Path and title of the picture.
    most
        Bars at most.
    total
        What the parts sum to.
    label
        Whether it is the score of a label, which parts speak for or against.

    """
    ordered = sorted(parts, key=lambda part: -abs(part[1]))
    shown, rest = ordered[:most], ordered[most:]
    bars = [(_named(name, x), part) for name, part in shown]
    if rest:
        bars.append((f"{len(rest):,} others together", sum(part for _, part in rest)))
    figure, ax = pyplot().subplots(figsize=(9, 1.4 + 0.36 * len(bars)))
    quiet(ax)
    ax.grid(visible=False)
    places = range(len(bars))[::-1]
    ax.barh(places, [part for _, part in bars], color=[BLUE if part >= 0 else ORANGE for _, part in bars], height=0.62)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set_yticks(list(places), [name for name, _ in bars], color=INK)
    widest = max((abs(part) for _, part in bars), default=0.0) or 1.0
    ax.set_xlim(
        min(0.0, *(part for _, part in bars)) - 0.22 * widest, max(0.0, *(part for _, part in bars)) + 0.22 * widest
    )
    for place, (_, part) in zip(places, bars, strict=True):
        side = "left" if part >= 0 else "right"
        ax.annotate(
            f"{part:+.3f}", (part, place), xytext=(4 if part >= 0 else -4, 0), textcoords="offset points", ha=side,
            va="center", color=INK, fontsize=9,
        )  # fmt: skip
    colours = " (blue: for this label, orange: against it)" if label else ""
    ax.set_xlabel(f"what each adds to the {total}, {sum(part for _, part in parts):+.3f} in all{colours}")
    set_title(ax, title)
    write(figure, path)


def _named(name: Any, x: Mapping[Any, Any]) -> str:
    """Name a feature with its value in the instance; the name of an indicator already has it."""
    text = str(name) if str(name).strip() else f'"{name}"'
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    if name not in x:
        return text
    value = x[name]
    return f"{text} = {value:.5g}" if isinstance(value, float) else f"{text} = {value}"
