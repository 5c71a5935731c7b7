"""Write the figures of the natural streams: benchmarks/NATURAL.md, README.md and the pictures of both.

    varifold bench run natural --store natural.sqlite      # about 17 CPU-minutes; only what is not done yet
    python -m benchmarks.natural_page natural.sqlite       # benchmarks/natural.json, the tables and the pictures

Figures that the store lacks stay as they are, with the pictures that need them, which is printed: one learner can be
run alone. The prose of both files is written by hand; what is between `<!-- natural: ... -->` and `<!-- end -->` is
not. A test compares it with benchmarks/natural.json.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
FIGURES = Path(__file__).parent / "natural.json"
PAGE = Path(__file__).parent / "NATURAL.md"
PICTURES = ROOT / "docs" / "_static" / "natural"
LABELS = {"log_loss": "log loss", "brier": "Brier score", "auroc": "AUROC", "cer": "error in %"}
NUMBERS = {"mae": "MAE", "rmse": "RMSE"}
_BOOSTING = {"LightGBM refit": "LightGBM, refit on all rows", "LightGBM last 5,000": "LightGBM, last 5,000 rows"}
DRAWN: dict[str, dict[str, str]] = {
    "football-odds": {"auto": "varifold auto", **_BOOSTING, "river logistic": "river", "naive": "bookmakers' mean"},
    "weather-aus": {"auto": "varifold auto", **_BOOSTING, "river logistic": "river", "naive": "rain as today"},
    "melbourne s4": {"auto": "varifold auto", **_BOOSTING, "same hour last week": "same hour last week"},
    "melbourne s9": {"auto": "varifold auto", **_BOOSTING, "same hour last week": "same hour last week"},
}
TITLES = {
    "football-odds": "Football results from bookmakers' odds: columns come and go",
    "weather-aus": "Rain tomorrow at 49 Australian stations",
    "melbourne s4": "Pedestrians in Melbourne: the next hour of counter s4 from all counters",
    "melbourne s9": "Pedestrians in Melbourne: the next hour of counter s9 from all counters",
}
"""Learners in the picture of each stream that has a calendar."""
README = {
    "football-odds": "football",
    "physionet2012": "ICU patients",
    "physionet2012-hours": "ICU hours",
    "nhanes": "health survey",
    "weather-aus": "weather",
    "electricity": "electricity",
    "melbourne s4": "Melbourne s4",
    "melbourne s9": "Melbourne s9",
}
IN_README = {
    "auto": "varifold `auto`",
    "LightGBM refit": "LightGBM, refit every 500 rows",
    "river logistic": "river scaled linear model",
    "river HAT": "river adaptive tree",
    "river ARF": "river ARF",
    "naive": "naive",
}
"""Learners in README.md, and their names there; a linear model is logistic where labels are predicted."""
SAME = {"river logistic": "river linear", "naive": "same hour last week"}
"""Names in the table of numbers, where they differ."""


# ---------------------------------------------------------------- figures


def collect(store: str, earlier: dict[str, Any]) -> dict[str, Any]:
    """Read the outcomes of a store; take what it lacks from the earlier figures."""
    from varifold.bench import ResultStore
    from varifold.bench.compare import fill
    from varifold.bench.tables import find_tables
    from varifold.report.leaderboard import entries, windows

    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    found: dict[str, Any] = {"tasks": {}, "learners": {}, "gaps": {}, "cells": {}}
    with ResultStore(store, write=False) as results:
        outcomes, failures = results.outcomes(), results.failures()
        facts = [facts for facts, *_ in results.environments()][-1]
    filled = [fill(table, outcomes, failures) for table in find_tables("natural")]
    for one in filled:
        metrics = NUMBERS if one.table.metrics[0] == "mae" else LABELS
        for name in entries(one):
            method = next(m for m in one.table.methods if m.name == name)
            found["learners"].setdefault(name, {"group": method.group, "model": method.default[0]})
        for data in one.table.data:
            for name in entries(one):
                number = one.number(one.table.settings[0], data, name, "default")
                cell = f"{data.name} | {name}"
                if not number:
                    if cell in earlier["cells"]:
                        found["cells"][cell] = {"commit": earlier["commit"], **earlier["cells"][cell]}
                        found["tasks"][data.name] = earlier["tasks"][data.name]
                    else:
                        found["gaps"][cell] = earlier["gaps"].get(cell) or _reason(number.gap)
                    continue
                outcome = number.outcomes[0]
                found["tasks"][data.name] = {
                    "title": data.title,
                    "rows": outcome.instances,
                    "labels": metrics is LABELS,
                }
                parts = windows(number, one.table.metrics[0])
                found["cells"][cell] = {
                    "commit": commit,
                    **{metric: _rounded(number.mean(metric)) for metric in metrics},
                    "windows": [_rounded(value) for value in parts.tolist()],
                    "us": round(1e6 * outcome.cpu / outcome.instances),
                    "mb": None if math.isnan(outcome.memory) else round(outcome.memory / 1e6, 1),
                }
    ranked = ranking(found)
    found["ranks"] = {
        "names": list(ranked.names),
        "ranks": [round(r, 3) for r in ranked.ranks],
        "streams": ranked.sets,
        "p": ranked.p,
        "difference": round(ranked.difference, 3),
    }
    diagram(ranked)
    pictures(filled)
    shown = ("python", "numpy", "river", "lightgbm", "capymoa", "scikit-learn")
    versions = {**earlier["versions"], **{k: facts[k] for k in shown if k in facts}}
    return {"commit": _common_commit(found["cells"]), "versions": versions, **found}


def ranking(found: dict[str, Any]) -> Any:
    """Rank the learners that have a figure on all streams of labels, by log loss."""
    from varifold.bench.statistics import rank

    tasks = tasks_of(found, labels=True)
    names = [name for name in found["learners"] if all(f"{task} | {name}" in found["cells"] for task in tasks)]
    return rank(names, np.array([[found["cells"][f"{task} | {name}"]["log_loss"] for name in names] for task in tasks]))


def _common_commit(cells: dict[str, Any]) -> str:
    """Return the commit of most cells, and leave only those of the others in the cells."""
    common, _ = Counter(cell["commit"] for cell in cells.values()).most_common(1)[0]
    for cell in cells.values():
        if cell["commit"] == common:
            del cell["commit"]
    return str(common)


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _reason(gap: str) -> str:
    """Shorten the reason of a gap: the first line, without the names of classes."""
    return f"fails with {gap.splitlines()[0].split(': ')[0]}" if "Exception" in gap else gap


# ---------------------------------------------------------------- pictures


def pictures(filled: list[Any]) -> None:
    from benchmarks.over_time import plot_over_time
    from varifold import datasets

    PICTURES.mkdir(parents=True, exist_ok=True)
    for one in filled:
        for data in one.table.data:
            drawn = DRAWN.get(data.name, {})
            lacking = [name for name in drawn if not one.number(one.table.settings[0], data, name, "default")]
            if lacking:
                print(f"{data.name}: the picture stays as it is; the store lacks {', '.join(lacking)}")
            if lacking or not drawn:
                continue
            times = datasets.load(data.load).times
            name = data.name.replace(" ", "-")
            plot_over_time(one, data, DRAWN[data.name], PICTURES / f"{name}.png", TITLES[data.name], times)


def diagram(ranked: Any) -> None:
    from varifold.report.svg import difference_diagram

    PICTURES.mkdir(parents=True, exist_ok=True)
    font = "text{font-family:'DejaVu Sans',sans-serif;font-size:12px;fill:#222}"
    style = f"<style>{font}.ca{{fill:#767676;font-size:11px}}</style>"
    drawn = difference_diagram(ranked, 820)
    head, _, rest = drawn.partition(">")
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    assert box is not None
    size = f' xmlns="http://www.w3.org/2000/svg" width="{box[1]}" height="{box[2]}"'
    back = '<rect width="100%" height="100%" fill="#fff"/>'
    (PICTURES / "ranks.svg").write_text(f"{head}{size}>{style}{back}{rest}\n", encoding="utf-8")


# ---------------------------------------------------------------- tables


def shown(value: float, metric: str) -> str:
    """Format a figure of a metric; a diverged learner in powers of ten."""
    if math.isnan(value):
        return "–"
    if value >= 1e5:
        return f"{value:.0e}".replace("e+", "e").replace("e0", "e")
    if metric == "cer":
        return f"{100 * value:.1f}"
    return f"{value:,.1f}" if metric in NUMBERS else f"{value:.3f}".removeprefix("0")


def tasks_of(found: dict[str, Any], labels: bool) -> list[str]:
    return [name for name, task in found["tasks"].items() if task["labels"] == labels]


def learners_of(found: dict[str, Any], tasks: list[str], metric: str) -> list[str]:
    """Return the learners that have a number on these tasks, by their mean rank; those with half of them last."""
    sign = -1 if metric == "auroc" else 1
    values = {
        task: {
            name: sign * found["cells"][f"{task} | {name}"][metric]
            for name in found["learners"]
            if f"{task} | {name}" in found["cells"]
        }
        for task in tasks
    }
    ranks = {
        name: [sum(v < by[name] for v in by.values()) for by in values.values() if name in by]
        for name in found["learners"]
    }
    there = [name for name, each in ranks.items() if each]
    return sorted(there, key=lambda name: (2 * len(ranks[name]) <= len(tasks), sum(ranks[name]) / len(ranks[name])))


def table(found: dict[str, Any], metric: str) -> str:
    """Format one metric in Markdown: learners in rows, streams in columns, the best of a stream bold."""
    tasks = tasks_of(found, metric in LABELS)
    first = metric in ("log_loss", "mae")
    lines = [f"| {({**LABELS, **NUMBERS})[metric]} | " + " | ".join(tasks) + " |", "| --- |" + " ---: |" * len(tasks)]
    names = learners_of(found, tasks, metric)
    best = {task: _best(found, task, names, metric) for task in tasks}
    for name in names:
        cells = []
        for task in tasks:
            cell = found["cells"].get(f"{task} | {name}")
            if cell is None:
                cells.append("–")
                continue
            text = shown(cell[metric], metric)
            text = f"**{text}**" if cell[metric] == best[task] else text
            cells.append(f"{text}\u00a0±{_deviation(cell, metric)}" if first else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _best(found: dict[str, Any], task: str, names: list[str], metric: str) -> float:
    there = [found["cells"][f"{task} | {name}"][metric] for name in names if f"{task} | {name}" in found["cells"]]
    return max(there) if metric == "auroc" else min(there)


def _deviation(cell: dict[str, Any], metric: str) -> str:
    mean = math.fsum(cell["windows"]) / len(cell["windows"])
    square = math.fsum((value - mean) ** 2 for value in cell["windows"]) / (len(cell["windows"]) - 1)
    return shown(math.sqrt(square), metric)


def cost(found: dict[str, Any]) -> str:
    """Format time and memory in Markdown."""
    tasks = list(found["tasks"])
    lines = ["| µs per instance, MB | " + " | ".join(tasks) + " |", "| --- |" + " ---: |" * len(tasks)]
    for name in found["learners"]:
        cells = [found["cells"].get(f"{task} | {name}") for task in tasks]
        if any(cells):
            texts = ["–" if cell is None else f"{cell['us']:,}, {_megabytes(cell['mb'])}" for cell in cells]
            lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _megabytes(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def tasks_table(found: dict[str, Any]) -> str:
    lines = ["| stream | what is predicted | rows |", "| --- | --- | ---: |"]
    lines += [f"| {name} | {task['title']} | {task['rows']:,} |" for name, task in found["tasks"].items()]
    return "\n".join(lines)


def gaps(found: dict[str, Any]) -> str:
    """List the cells without a number, by reason and learner."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for cell, reason in found["gaps"].items():
        task, name = cell.split(" | ")
        by_reason.setdefault(reason, {}).setdefault(name, []).append(task)
    lines = []
    for reason, by_name in by_reason.items():
        listed = "; ".join(f"{name} ({', '.join(tasks)})" for name, tasks in by_name.items())
        lines.append(f"- {reason}: {listed}.")
    return "\n".join(lines) or "Nothing is missing."


def later(found: dict[str, Any]) -> str:
    """Format the mean of the last four of five windows: after everybody had a fifth of the stream to learn from."""
    tasks = list(found["tasks"])
    lines = ["| windows 2 to 5 | " + " | ".join(tasks) + " |", "| --- |" + " ---: |" * len(tasks)]
    later = {cell: facts["windows"][1:] for cell, facts in found["cells"].items()}
    means = {cell: math.fsum(values) / len(values) for cell, values in later.items()}
    best = {task: min(v for cell, v in means.items() if cell.startswith(f"{task} | ")) for task in tasks}
    rows = [name for name in found["learners"] if any(f"{task} | {name}" in means for task in tasks)]
    for name in rows:
        texts = []
        for task in tasks:
            value = means.get(f"{task} | {name}", math.nan)
            text = shown(value, "log_loss" if found["tasks"][task]["labels"] else "mae")
            texts.append(f"**{text}**" if value == best[task] else text)
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def ahead(found: dict[str, Any]) -> str:
    """Describe, for each task, the best learner and how far `auto` is from it."""
    header = "| stream | best of all | `auto` | behind the best | best of the others' | naive |"
    lines = [header, "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for task, facts in found["tasks"].items():
        metric = "log_loss" if facts["labels"] else "mae"
        cells = {
            name: found["cells"][f"{task} | {name}"][metric]
            for name in found["learners"]
            if f"{task} | {name}" in found["cells"]
        }
        best = min(cells, key=cells.__getitem__)
        peers = {n: v for n, v in cells.items() if found["learners"][n]["group"] not in ("varifold", "naive")}
        naive = {n: v for n, v in cells.items() if found["learners"][n]["group"] == "naive"}
        columns = [f"{shown(cells[best], metric)} ({best})", shown(cells["auto"], metric)]
        columns.append(f"{100 * (cells['auto'] / cells[best] - 1):.1f} %")
        for some in (peers, naive):
            name = min(some, key=some.__getitem__, default="")
            columns.append(f"{shown(some[name], metric)} ({name})" if name else "–")
        lines.append(f"| {task} | " + " | ".join(columns) + " |")
    return "\n".join(lines)


def made(found: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    streams = Counter(key.split(" | ")[1] for key in found["cells"])
    later: dict[tuple[str, str], list[str]] = {}
    for key, cell in found["cells"].items():
        task, name = key.split(" | ")
        if "commit" in cell:
            later.setdefault((name, cell["commit"]), []).append(task)
    others = []
    for (name, commit), tasks in later.items():
        some = "" if len(tasks) == streams[name] else f" ({', '.join(tasks)})"
        others.append(f"{name}{some} of commit {commit}")
    return f"Learners as of commit {found['commit']}{''.join(f', {each}' for each in others)}; {versions}."


def ranks(found: dict[str, Any]) -> str:
    order = sorted(zip(found["ranks"]["ranks"], found["ranks"]["names"], strict=True))
    listed = ", ".join(f"{name} {rank:.2f}" for rank, name in order)
    facts = found["ranks"]
    return (
        f"Friedman's test over {facts['streams']} streams: p = {facts['p']:.2g}; Nemenyi's critical difference "
        f"{facts['difference']:.2f}. Average ranks: {listed}."
    )


def readme_table(found: dict[str, Any]) -> str:
    """Format the table of README.md: log loss and MAE, the lowest of a column bold."""
    tasks = [task for task in README if task in found["tasks"]]
    header = [f"{README[task]}" for task in tasks]
    lines = ["| log loss; Melbourne: MAE | " + " | ".join(header) + " |", "| --- |" + " ---: |" * len(tasks)]
    rows = {}
    for name, title in IN_README.items():
        cells = [_of_readme(found, task, name) for task in tasks]
        if any(value is not None for value, _ in cells):
            rows[title] = cells
    for title, cells in rows.items():
        texts = []
        for j, task in enumerate(tasks):
            value, mark = cells[j]
            lowest = min(each[j][0] for each in rows.values() if each[j][0] is not None)
            text = (
                "–" if value is None else shown(value, "log_loss" if found["tasks"][task]["labels"] else "mae") + mark
            )
            texts.append(f"**{text}**" if value is not None and value == lowest else text)
        lines.append(f"| {title} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _of_readme(found: dict[str, Any], task: str, name: str) -> tuple[float | None, str]:
    """Return a figure of README.md and its mark: where LightGBM was not refit on all rows, that on the last 5,000."""
    labels = found["tasks"][task]["labels"]
    tried = {name if labels else SAME.get(name, name): ""}
    if name == "LightGBM refit":
        tried["LightGBM last 5,000"] = "¹"
    for each, mark in tried.items():
        cell = found["cells"].get(f"{task} | {each}")
        if cell is not None:
            return cell["log_loss" if labels else "mae"], mark
    return None, ""


PARTS: dict[str, Any] = {
    "tasks": tasks_table,
    "ahead": ahead,
    "gaps": gaps,
    "later": later,
    "cost": cost,
    "ranks": ranks,
    "made": made,
    "readme": readme_table,
    **{metric: (lambda found, metric=metric: table(found, metric)) for metric in (*LABELS, *NUMBERS)},
}


def page(text: str, found: dict[str, Any]) -> str:
    """Return a page with its marked parts replaced."""

    def part(match: re.Match[str]) -> str:
        return f"<!-- natural: {match[1]} -->\n{PARTS[match[1]](found)}\n<!-- end -->"

    return re.sub(r"<!-- natural: (\w+) -->\n.*?<!-- end -->", part, text, flags=re.S)


def main() -> None:
    if len(sys.argv) > 1:
        earlier = json.loads(FIGURES.read_text())
        FIGURES.write_text(json.dumps(collect(sys.argv[1], earlier), indent=1) + "\n")
    found = json.loads(FIGURES.read_text())
    for path in (PAGE, ROOT / "README.md"):
        path.write_text(page(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
