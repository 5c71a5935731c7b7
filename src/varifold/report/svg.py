"""Make drawings as SVG text: small, sharp at any size, readable without a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from varifold.base.plural import plural
from varifold.bench.statistics import Ranking
from varifold.report.style import BLUE, FAINT, GREY, INK, LINES

__all__ = ["Line", "at_both_widths", "bar_chart", "difference_diagram", "error_chart"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Line:
    """A curve: mean and deviation over repeats at some instances."""

    name: str
    at: Floats
    mean: Floats
    std: Floats
    colour: str
    dashed: bool = False


def colour(i: int) -> str:
    """Return the i-th colour; they repeat."""
    return LINES[i % len(LINES)]


def at_both_widths(draw: Callable[[int], str], broad: int = 760) -> str:
    """Draw for a wide screen and for a phone, so that texts keep their size; the style sheet shows one of them."""
    return f'<div class="broad">{draw(broad)}</div><div class="narrow">{draw(334)}</div>'


def error_chart(
    title: str,
    lines: Sequence[Line],
    majority: float,
    width: int = 264,
    height: int = 170,
    period: Sequence[str] | None = None,
) -> str:
    """Draw the error so far, a band of one deviation around each full line, and the majority class or mean dotted.

    `period` holds the times of the first and the last instance, which are shown instead of the number of instances.
    """
    left, right, top, bottom = 34 if width < 300 else 42, 8, 24 if title else 8, 20
    n = max(float(line.at[-1]) for line in lines)
    first = min(float(line.at[0]) for line in lines)
    start = first if first > 0.2 * n else 0.0
    settled = [line.mean[len(line.mean) // 10 :] for line in lines]
    peak = max(float(np.nanmax(s)) for s in settled)
    if peak > 1.0 and majority == majority:
        peak = min(peak, 4.0 * majority)  # a regressor that diverged must not flatten the others
    high = 1.08 * max(peak, majority if majority == majority else 0.0, 0.02)

    def x(v: Any) -> Any:
        return left + (width - left - right) * (np.asarray(v) - start) / max(n - start, 1.0)

    def y(v: Any) -> Any:
        return top + (height - top - bottom) * (1 - np.clip(np.asarray(v), 0, high) / high)

    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}: error over instances">',
        f'<text x="{left}" y="14" class="ct">{escape(title[: width // 8])}</text>',
    ]
    for tick in _ticks(high):
        level = float(y(tick))
        parts.append(f'<path d="M{left} {level:.1f}H{width - right}" stroke="{FAINT}" stroke-width="1"/>')
        parts.append(f'<text x="{left - 5}" y="{level + 3:.1f}" class="ca" text-anchor="end">{_tick(tick)}</text>')
    span = f"{start:,.0f} to {n:,.0f} instances" if start else plural(int(n), "instance")
    longest = 25 if width >= 400 else 16  # two dates with minutes next to each other
    begin, end = [time[:longest] for time in period] if period else ("", span)
    parts.append(f'<text x="{left}" y="{height - 6}" class="ca">{escape(begin)}</text>')
    parts.append(f'<text x="{width - right}" y="{height - 6}" class="ca" text-anchor="end">{escape(end)}</text>')
    if majority == majority:
        level = float(y(majority))
        parts.append(
            f'<path d="M{left} {level:.1f}H{width - right}" stroke="{GREY}" stroke-width="1" stroke-dasharray="1 3"/>'
        )
    parts += [_band(x(line.at), y(line.mean - line.std), y(line.mean + line.std), line) for line in lines]
    parts += [_curve(x(line.at), y(line.mean), line) for line in lines]
    return "".join([*parts, "</svg>"])


def _ticks(high: float) -> list[float]:
    """Return at most six levels from 0, in steps of 1, 2 or 5 times a power of ten, none below 0.01."""
    power = 10.0 ** math.floor(math.log10(max(high, 0.05)) - 1.0)
    step = next(s * power for s in (1, 2, 5, 10, 20, 50) if high / (s * power) <= 5 and s * power > 0.0099)
    return [k * step for k in range(int(high / step) + 1)]


def _tick(value: float) -> str:
    """Format a level: a share without its leading zero, a larger number with three digits and k or M."""
    if value >= 9_999.5:
        return f"{value / 1e6:.3g}M" if value >= 999_500 else f"{value / 1e3:.3g}k"
    if value >= 99.5:
        return f"{value:,.0f}"
    return "0" if value == 0 else f"{value:.2f}"[1:] if value < 0.995 else f"{value:.3g}"


def _points(xs: Floats, ys: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys, strict=True) if a == a and b == b)


def _curve(xs: Floats, ys: Floats, line: Line) -> str:
    dash = ' stroke-dasharray="4 3"' if line.dashed else ""
    points = _points(xs, ys)
    return (
        f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="1.6"{dash}/>' if points else ""
    )


def _band(xs: Floats, low: Floats, high: Floats, line: Line) -> str:
    if line.dashed or not np.nanmax(np.abs(line.std), initial=0.0) > 0:
        return ""
    return (
        f'<polygon points="{_points(xs, high)} {_points(xs[::-1], low[::-1])}" fill="{line.colour}" '
        'fill-opacity=".15" stroke="none"/>'
    )


def bar_chart(rows: Sequence[tuple[str, float, float, str]], width: int = 400) -> str:
    """Draw a bar per (name, value, standard error, remark), with a line of two standard errors to either side."""
    most = 24 if width >= 400 else 16
    names = [name if len(name) <= most else f"{name[: most - 1]}…" for name, *_ in rows]
    left, right, step = 16 + int(7.8 * max(map(len, names))), 96, 24
    high = max(value + 2.0 * error for _, value, error, _ in rows)
    height = step * len(rows) + 8

    def x(v: float) -> float:
        return left + (width - left - right) * min(max(v, 0.0), high) / high

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="bars">']
    for i, (shown, (_, value, error, remark)) in enumerate(zip(names, rows, strict=True)):
        y = step * i + 4
        parts.append(
            f'<text x="{left - 10}" y="{y + 14}" class="cl" text-anchor="end">{escape(shown)}</text>'
            f'<path d="M{left} {y + 3}H{x(value):.1f}v14H{left}z" fill="{BLUE}"/>'
            f'<path d="M{x(value - 2 * error):.1f} {y + 10}H{x(value + 2 * error):.1f}" stroke="{INK}" '
            'stroke-width="1.2"/>'
            f'<text x="{width - right + 10}" y="{y + 14}" class="ca">{escape(remark)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _width_of(names: list[str]) -> int:
    """Return the width that labels need, including the rank."""
    return 58 + int(7.1 * max((len(name) for name in names), default=0))


def difference_diagram(ranking: Ranking, width: int = 720) -> str:
    """Draw average ranks on a line, best at the left; bars join those that do not differ by Nemenyi's test."""
    order = np.argsort(ranking.ranks, kind="stable")
    k = len(order)
    ties = ranking.ties()
    half = -(-k // 2)
    left, right = (_width_of([ranking.names[i] for i in part.tolist()]) for part in (order[:half], order[half:]))
    width = max(width, left + right + 240)
    top = 40
    axis = top + 8 * len(ties) + 12
    height = axis + 20 * half + 26

    def x(rank: float) -> float:
        return left + (width - left - right) * (rank - 1) / max(1, k - 1)

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="critical difference diagram">']
    parts.append(f'<path d="M{x(1):.1f} {top}H{x(k):.1f}" stroke="{INK}" stroke-width="1"/>')
    for tick in range(1, k + 1):
        parts.append(f'<path d="M{x(tick):.1f} {top}v-5" stroke="{INK}" stroke-width="1"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{top - 9}" class="ca" text-anchor="middle">{tick}</text>')
    end = min(x(1 + ranking.difference), width - 10.0)
    parts.append(
        f'<path d="M{x(1):.1f} 10H{end:.1f}M{x(1):.1f} 6v8M{end:.1f} 6v8" stroke="{GREY}" stroke-width="1.5"/>'
    )
    parts.append(f'<text x="{x(1) - 8:.1f}" y="14" class="ca" text-anchor="end">CD {ranking.difference:.2f}</text>')
    for place, (i, j) in enumerate(ties):
        level = top + 9 + 8 * place
        a, b = x(ranking.ranks[order[i]]) - 4, x(ranking.ranks[order[j]]) + 4
        parts.append(f'<path d="M{a:.1f} {level}H{b:.1f}" stroke="{INK}" stroke-width="3.2" stroke-linecap="round"/>')
    for place, index in enumerate(order.tolist()):
        at_left = place < half
        level = axis + 20 * (place if at_left else k - 1 - place) + 10
        rank, name = ranking.ranks[index], escape(ranking.names[index])
        side = left - 12 if at_left else width - right + 12
        anchor, beyond = ("end", -4) if at_left else ("start", 4)
        label = f"{name} <tspan fill='{GREY}'>{rank:.2f}</tspan>"
        parts.append(
            f'<path d="M{x(rank):.1f} {top}V{level}H{side:.1f}" stroke="{GREY}" stroke-width="1" fill="none"/>'
            f'<circle cx="{x(rank):.1f}" cy="{top}" r="2.6" fill="{INK}"/>'
            f'<text x="{side + beyond:.1f}" y="{level + 4}" class="cl" text-anchor="{anchor}">{label}</text>'
        )
    return "".join([*parts, "</svg>"])
