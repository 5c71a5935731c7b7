"""Show what a monitor found: a page that a manager can read, and a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from varifold.base.plural import plural
from varifold.report.document import html_document
from varifold.report.style import BLUE, INK, ORANGE, thousands
from varifold.report.svg import at_both_widths

if TYPE_CHECKING:
    from varifold.monitor import Event, Monitor

__all__ = ["plot_monitor", "watch_page", "watch_summary"]

_MOST_LINES = 60
_STATUS = {"present": "near", "new": "better", "silent": "worse", "gone": "worse"}
_SENTENCES = {
    "birth": "appeared",
    "silence": "fell silent",
    "return": "came back",
    "stuck": "stuck at one value",
    "drift": "changed in distribution",
    "unit change": "changed unit",
    "rename": "renamed",
}


def watch_summary(monitor: Monitor) -> str:
    """Describe the stream in one sentence."""
    features = monitor.features.values()
    counts = {status: sum(f.status == status for f in features) for status in _STATUS}
    parts = [f"{counts['silent']:,} silent", f"{counts['gone']:,} gone", f"{counts['new']:,} new"]
    kinds = [e.kind for e in monitor.events]
    changes = sum(kind in ("drift", "unit change", "stuck") for kind in kinds)
    return (
        f"{plural(monitor.step, 'instance')}, {plural(len(features), 'feature')}: {', '.join(parts)}; "
        f"{plural(changes, 'change')} of values, {plural(len(monitor.renames), 'suggested rename')}."
    )


def watch_page(monitor: Monitor, title: str, when: Mapping[int, str] | None = None) -> str:
    """Write a self-contained HTML page: summary, map of presence, events, features; `when` has the times of steps."""
    sections = [
        f'<header><p class="over">varifold watch</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(watch_summary(monitor))}</p></header>',
        f'<section id="map"><h2>When each feature is present</h2>{_map(monitor)}'
        '<p class="small">One line per feature, in order of appearance; time runs to the right. The darker, the more '
        "instances have it. Marks above the map are the events listed below.</p></section>",
        f'<section id="events"><h2>What happened</h2>{_events(monitor.events, when or {})}</section>',
        f'<section id="renames"><h2>Suggested renames</h2>{_renames(monitor)}</section>' if monitor.renames else "",
        f'<section id="features"><h2>Features</h2>{_features(monitor)}</section>',
    ]
    return html_document(f"{title}: features", sections)


def _shown(monitor: Monitor) -> tuple[list[Any], Any, Any]:
    """Return the presence of the features to draw: all, or those present most often."""
    names, starts, shares = monitor.presence()
    if len(names) > _MOST_LINES:
        count = np.array([monitor.features[name].count for name in names])
        chosen = np.sort(np.argsort(-count, kind="stable")[:_MOST_LINES])
        names, shares = [names[i] for i in chosen], shares[chosen]
    return names, starts, shares


def _map(monitor: Monitor) -> str:
    names, starts, shares = _shown(monitor)
    if not names:
        return "<p>No feature was seen.</p>"
    drawn = at_both_widths(lambda width: _drawn_map(monitor, names, starts, shares, width), 900)
    more = len(monitor.features) - len(names)
    return drawn + (f'<p class="small">{more:,} rarer features are not drawn.</p>' if more else "")


def _drawn_map(monitor: Monitor, names: list[Any], starts: Any, shares: Any, width: int) -> str:
    left, most, ticks = (150, 24, 5) if width >= 600 else (104, 15, 3)
    top, line = 16, 13
    end = float(max(monitor.step, 1))
    edges = left + (width - left) * (np.append(starts, end + 1) - 1) / end
    height = top + line * len(names) + 18
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="presence of features over time">']
    for row, name in enumerate(names):
        y = top + row * line
        text = str(name) if len(str(name)) <= most else str(name)[: most - 1] + "…"
        parts.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end" class="ca">{escape(text)}</text>')
        levels = np.round(shares[row] * 5) / 5
        levels[(shares[row] > 0) & (levels == 0)] = 0.1
        for first, last in _runs(levels):
            if levels[first] > 0:
                x, w = edges[first], edges[last + 1] - edges[first]
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{line - 2}" fill="{BLUE}" '
                    f'opacity="{0.15 + 0.85 * levels[first]:.2f}"/>'
                )
    for event in monitor.events:
        x = left + (width - left) * (event.step - 1) / end
        parts.append(
            f'<path d="M{x:.1f} {top - 3} l-4 -8 h8 z" fill="{ORANGE}"><title>{escape(str(event))}</title></path>'
        )
    for at in np.linspace(0.0, end, ticks):
        x = left + (width - left) * at / end
        anchor = "start" if at == 0.0 else "end" if at == end else "middle"
        parts.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="{anchor}" class="ca">{at:,.0f}</text>')
    return "".join([*parts, "</svg>"])


def _runs(levels: Any) -> list[tuple[int, int]]:
    """Return first and last position of each run of equal levels."""
    cuts = np.flatnonzero(np.diff(levels)) + 1
    firsts = [0, *cuts.tolist()]
    return list(zip(firsts, [*(cut - 1 for cut in firsts[1:]), len(levels) - 1], strict=True))


def _events(events: Sequence[Event], when: Mapping[int, str]) -> str:
    if not events:
        return "<p>Nothing: no feature appeared, fell silent or changed.</p>"
    lines = []
    for event in sorted(events, key=lambda e: e.step):
        names = [
            f"<b>{escape(str(name))}</b>" + (f" ({escape(event.detail[name])})" if name in event.detail else "")
            for name in event.features[:12]
        ]
        rest = len(event.features) - len(names)
        names += [f"{rest:,} more"] if rest > 0 else []
        time = f"<td>{escape(when[event.step] or '-')}</td>" if when else ""
        lines.append(
            f'<tr><td>{event.step:,}</td>{time}<td class="what">{_SENTENCES[event.kind]}</td>'
            f'<td class="text">{", ".join(names)}</td></tr>'
        )
    columns = ["<th>instance</th>", "<th>time</th>" if when else ""]
    columns += [f'<th class="text">{column}</th>' for column in ("what", "features")]
    head = f"<tr>{''.join(columns)}</tr>"
    return f'<div class="wide"><table class="events"><thead>{head}</thead><tbody>{"".join(lines)}</tbody></table></div>'


def _renames(monitor: Monitor) -> str:
    items = "".join(f"<li>{escape(str(rename))}</li>" for rename in monitor.renames)
    names = ", ".join(f"{r.old!r}: {r.new!r}" for r in monitor.renames)
    return (
        f'<ul class="notes">{items}</ul><p class="small">Evidence lies between 0, different, and 1, alike. '
        f"To keep what a learner knows of them:</p><pre>learner.rename({{{escape(names)}}})</pre>"
    )


def _features(monitor: Monitor) -> str:
    head = "".join(
        f"<th>{h}</th>" for h in ("status", "first seen", "last seen", "count", "usually present", "recently")
    )
    rows = [
        f'<tr><th class="name">{escape(str(f.name))}</th><td class="{_STATUS[f.status]}">{f.status}</td>'
        f"<td>{f.first:,}</td><td>{f.last:,}</td><td>{f.count:,}</td><td>{f.share:.0%}</td><td>{f.recent:.0%}</td></tr>"
        for f in monitor.features.values()
    ]
    return (
        f'<div class="wide"><table><thead><tr><th class="name">feature</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def plot_monitor(monitor: Monitor, path: str | os.PathLike[str], title: str = "") -> None:
    """Draw the map of presence with the events above it."""
    from varifold.report.style import pyplot, quiet, set_title, write

    plt = pyplot()
    names, starts, shares = _shown(monitor)
    height = min(11.0, max(1.6, 0.2 * len(names)))
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(10, height + 2.2), sharex=True, height_ratios=[1.3, height], gridspec_kw={"hspace": 0.06}
    )
    quiet(top)
    kinds = [kind for kind in _SENTENCES if any(e.kind == kind for e in monitor.events)]
    for row, kind in enumerate(kinds):
        steps = [e.step for e in monitor.events if e.kind == kind]
        top.scatter(steps, [row] * len(steps), marker="v", s=26, color=ORANGE, linewidths=0)
    top.set_yticks(range(len(kinds)), kinds, fontsize=8, color=INK)
    top.set_ylim(len(kinds) - 0.5, -0.5)
    edges = np.append(starts, monitor.step + 1) if len(starts) else np.array([0, 1])
    if len(names):
        bottom.pcolormesh(edges, np.arange(len(names) + 1), shares, cmap="Blues", vmin=0, vmax=1, rasterized=True)
        bottom.invert_yaxis()
        bottom.set_yticks(np.arange(len(names)) + 0.5, [str(n)[:24] for n in names], fontsize=8, color=INK)
    bottom.tick_params(length=0)
    for side in bottom.spines.values():
        side.set_visible(False)
    bottom.set_xlabel("instances")
    thousands(bottom)
    set_title(top, title)
    write(figure, path)
