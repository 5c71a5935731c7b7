"""Style of all pictures: colours that colour-blind readers can distinguish, plain axes, labels at the lines."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from varifold.errors import ParameterError, missing_extra

BLUE, ORANGE, GREEN, PURPLE, SKY, RED = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#B2182B"
LINES = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
_MOST_LINES = 3
INK, GREY, FAINT = "#222222", "#767676", "#E4E4E4"


def pyplot() -> Any:
    """Import matplotlib.pyplot without a display; the error explains how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise missing_extra("pictures need matplotlib", "plot") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "text.color": INK,
            "axes.edgecolor": GREY,
            "axes.labelcolor": INK,
            "axes.titlelocation": "left",
            "xtick.color": GREY,
            "ytick.color": GREY,
            "figure.facecolor": "white",
        }
    )
    return plt


def quiet(ax: Any) -> None:
    """Remove the box and add a faint horizontal grid."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)


def thousands(ax: Any) -> None:
    """Separate the thousands of numbers on the horizontal axis."""
    ax.xaxis.set_major_formatter(pyplot().FuncFormatter(lambda v, _: f"{v:,.0f}"))


def label_right(ax: Any, text: str, x: float, y: float, colour: str) -> None:
    """Write a name in bold to the right of a point, outside the axes if needed."""
    ax.annotate(
        text,
        (x, y),
        xytext=(8, 0),
        textcoords="offset points",
        color=colour,
        va="center",
        fontweight="bold",
        annotation_clip=False,
    )


def label_ends(ax: Any, ends: Sequence[tuple[float, str, str]], x: float, gap: float) -> None:
    """Write names at the right ends of lines, (y, text, colour), at least `gap` apart and above the horizontal axis."""
    placed: list[list[Any]] = [[y, y, text, colour] for y, text, colour in sorted(ends)]
    for below, above in pairwise(placed):
        above[0] = max(above[0], below[0] + gap)
    drift = sum(p[0] - p[1] for p in placed) / max(1, len(placed))
    if placed:
        drift = min(drift, placed[0][0] - ax.get_ylim()[0] - 0.5 * gap)
    for y, _, text, colour in placed:
        label_right(ax, text, x, y - drift, colour)


def set_title(ax: Any, text: str, size: float = 13) -> None:
    """Write a title above the axes, in at most three lines that fit the figure."""
    inches = ax.figure.get_size_inches()[0]
    most = max(20, int(72 * 0.8 * inches / (0.62 * size)))
    lines = textwrap.wrap(text, most) if text else [""]
    if len(lines) > _MOST_LINES:
        lines = [
            *lines[: _MOST_LINES - 1],
            textwrap.shorten(" ".join(lines[_MOST_LINES - 1 :]), most, placeholder=" …"),
        ]
    ax.set_title("\n".join(lines), fontsize=size, fontweight="bold", pad=12)


def headline(figure: Any, text: str, x: float = 0.08, **place: Any) -> None:
    """Write a title above all panels of a figure."""
    figure.suptitle(text, x=x, ha="left", fontsize=13, fontweight="bold", **place)


def natural(names: Iterable[Any]) -> list[Any]:
    """Sort names in natural order: x2 before x10."""

    def key(name: Any) -> list[tuple[int, int, str]]:
        parts = re.findall(r"\d+|\D+", str(name))
        return [(0, int(part), "") if part.isdecimal() else (1, 0, part.lower()) for part in parts]

    return sorted(names, key=key)


def trailing(values: Any, width: int) -> Any:
    """Return the mean of the last `width` entries at each position."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    lo = np.maximum(0, np.arange(1, len(values) + 1) - width)
    hi = np.arange(1, len(values) + 1)
    return (sums[hi] - sums[lo]) / (hi - lo)


def check_name(path: str | os.PathLike[str]) -> None:
    """Raise an error for a file name whose suffix is no picture format, before any work is done."""
    ending = os.path.splitext(os.fspath(path))[1][1:].lower()
    if ending not in pyplot().Figure().canvas.get_supported_filetypes():
        raise ParameterError(f"{os.fspath(path)!r} does not end in a picture format; use .png, .svg or .pdf")


def write(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a picture; the suffix determines the format."""
    check_name(path)
    try:
        figure.savefig(path, dpi=160, bbox_inches="tight", pad_inches=0.25)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        pyplot().close(figure)
