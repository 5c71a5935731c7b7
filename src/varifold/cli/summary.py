"""Output of ``varifold run``: facts about the run and its metrics, as a table, JSON or CSV."""

from __future__ import annotations

import argparse
import math
import platform
from typing import Any

import numpy as np

from varifold.base.plural import plural
from varifold.base.spec import ModelSpec
from varifold.cli import costs, details, source, uncertainty
from varifold.cli.output import number, print_csv, print_json, table
from varifold.evaluate import RegressionResult, Summary
from varifold.evaluate.metrics import METRICS

_SHOWN = tuple(name for name in METRICS if name not in ("majority_cer", "us_per_instance"))
_PLAIN = (int, float, str, list, tuple, type(None))
"""Types of parameters that JSON can represent."""
_NUMBERS_SHOWN = ("mae", "rmse", "r2", "mape", "pinball")


def show(args: argparse.Namespace, facts: dict[str, Any], summary: Summary) -> None:
    """Print the metrics in the requested format."""
    if args.format == "json":
        print_json(facts | details.facts(args, summary))
    elif args.format == "csv":
        print_csv(_lines(args, facts, summary) if args.by is None else details.period_lines(summary))
    else:
        print("\n\n".join([_page(facts), *details.pages(args, summary)]))


_ESTIMATED = ("labels", "error", "standard_error", "plain", "confidence", "calibration_error")


def facts_of(
    args: argparse.Namespace, spec: ModelSpec, given: source.Input, summary: Summary, delay: Any, stopped: str | None
) -> dict[str, Any]:
    """Collect the facts about a run, for JSON and for the table; `stopped` is why it ended early."""
    first = summary.results[0]
    learner = summary.learner
    params = learner._get_params() if hasattr(learner, "_get_params") else dict(spec.params)
    found = {
        "model": spec.name,
        "task": "regression" if isinstance(first, RegressionResult) else "classification",
        "params": {k: v if isinstance(v, _PLAIN) else str(v) for k, v in params.items()},
        "data": given.name,
        "title": given.title,
        "scenario": args.scenario,
        "scale": args.scale or params.get("scale"),
        "instances": first.instances,
        "stopped": stopped,
        "features": columns_of(given, summary),
        "names": max(r.names for r in summary.results),
    }
    about = {
        "repeats": len(summary.results),
        "seed": args.seed,
        "delay": getattr(given.whole, "delay", None) or None if delay is None else delay,
        "scored_from": first.scored_from,
        "unlabelled": first.unlabelled,
        "skipped": given.skipped,
        "empty": _count(summary.mean("empty")),
    }
    resources = {
        "us_per_instance": summary.mean("us_per_instance"),
        "seconds": float(summary.values("seconds").sum()),
        "peak_memory": first.peak_memory,
        "versions": _versions(),
    }
    about |= uncertainty.facts(summary)
    if isinstance(first, RegressionResult):
        bounds = {"lowest": first.lowest, "highest": first.highest}
        return found | bounds | about | _regression_metrics(summary) | resources
    about |= _requested(summary)
    metrics = _label_metrics(summary) | costs.facts(args.costs, summary)
    return found | {"classes": len(first.labels), "labels": first.labels} | about | metrics | resources


def _requested(summary: Summary) -> dict[str, Any]:
    """Return the labels requested and the error estimated from them; nothing without --ask."""
    estimates = [result.requested for result in summary.results if result.requested is not None]
    if not estimates:
        return {}
    means = {name: float(np.mean([getattr(e, name) for e in estimates])) for name in _ESTIMATED}
    return {"requested": {**means, "labels": _count(means["labels"])}}


def _label_metrics(summary: Summary) -> dict[str, Any]:
    metrics = summary.metrics()
    return {name: metrics[name] for name in _SHOWN} | {
        "positive": summary.results[0].positive,
        "majority_cer": summary.mean("majority_cer"),
        "majority_share": summary.mean("majority_share"),
    }


def _regression_metrics(summary: Summary) -> dict[str, Any]:
    metrics = summary.metrics()
    return {name: metrics[name] for name in _NUMBERS_SHOWN} | {
        "quantile": summary.results[0].quantile,
        "mean_mae": summary.mean("mean_mae"),
    }


def columns_of(given: source.Input, summary: Summary) -> int:
    """Return the number of columns before indicators: that of the data set, or those seen."""
    known = given.columns()
    return max(r.columns for r in summary.results) if known is None else known


def _count(mean: float) -> float | int:
    """Return a mean count, as an int if it is whole."""
    return int(mean) if mean == int(mean) else mean


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # the import takes longer than a small file

    from varifold import __version__

    found = {"varifold": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "river"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _lines(args: argparse.Namespace, facts: dict[str, Any], summary: Summary) -> list[dict[str, Any]]:
    return [
        {"model": args.model, "data": args.data or " ".join(args.files), "scenario": args.scenario, "seed": seed}
        | {"instances": result.instances, "empty": result.empty}
        | {name: getattr(result, name) for name in summary.metric_names}
        | uncertainty.line(result)
        | {"stopped": facts["stopped"]}
        for seed, result in zip(summary.seeds, summary.results, strict=True)
    ]


def title(facts: dict[str, Any]) -> str:
    """Return model, data and scenario, and whether the run ended early."""
    scenario = "" if facts["scenario"] == "none" else f", {facts['scenario']}"
    stopped = f", stopped early after {plural(facts['instances'], 'instance')}" if facts["stopped"] else ""
    return f"{facts['model']} on {facts['title']}{scenario}{stopped}"


def _span(low: float, high: float) -> str:
    """Format two numbers with enough digits to see their distance, as of prices near a thousand million."""
    far = max(abs(low), abs(high))
    digits = 6 if low == high else max(6, math.ceil(math.log10(min(far / (high - low), 1e14))) + 3)
    return f"{low:.{digits}g} to {high:.{digits}g}"


def _page(facts: dict[str, Any]) -> str:
    several = facts["repeats"] > 1
    instances = "" if facts["stopped"] else plural(facts["instances"], "instance") + ", "
    runs = f"{facts['repeats']} repeats, " if several else ""
    numeric = facts["task"] == "regression"
    what = f"targets from {_span(facts['lowest'], facts['highest'])}" if numeric else _classes(facts["classes"])
    head = (
        f"{title(facts)}: {instances}{runs}{plural(facts['features'], 'column')} "
        f"({plural(facts['names'], 'feature')}), {what}"
    )
    rows = []
    for name in _NUMBERS_SHOWN if numeric else _SHOWN:
        spread = [number(facts[name]["std"])] if several else []
        rows.append([_label(name, facts), number(facts[name]["mean"]), *spread])
    for label, measured in uncertainty.shown(facts):
        rows.append([label, number(measured["mean"]), *([number(measured["std"])] if several else [])])
    if "cost" in facts:
        constant = facts["constant_cost"]
        spread = [number(facts["cost"]["std"])] if several else []
        rows.append(["cost per row", number(facts["cost"]["mean"]), *spread])
        rows.append([f"cost per row if always {constant['label']!r}", number(constant["mean"]), *[""] * several])
    if "requested" in facts:
        requested = facts["requested"]
        rows.append(["labels requested", f"{requested['labels']:,}", *[""] * several])
        rows.append(["cer estimated from them", number(requested["error"]), *[""] * several])
        rows.append(["its standard error", number(requested["standard_error"]), *[""] * several])
        rows.append(["calibration error estimated from them", number(requested["calibration_error"]), *[""] * several])
    baseline = ("mae of the mean", "mean_mae") if numeric else ("majority class cer", "majority_cer")
    rows.append([baseline[0], number(facts[baseline[1]]), *[""] * several])
    rows.append(["us per instance", number(facts["us_per_instance"], 2), *[""] * several])
    body = table(["metric", "mean", "std"] if several else ["metric", "value"], rows)
    notes = _notes(facts, several)
    return "\n".join([head, "", body, *([""] if notes else []), *notes])


def _counted(count: float | int, noun: str) -> str:
    """Format a count, or a mean of counts, with its noun."""
    return plural(count, noun) if isinstance(count, int) else f"{count:,.1f} {noun}s"


def _classes(count: int) -> str:
    return "1 class" if count == 1 else f"{count:,} classes"


def _label(name: str, facts: dict[str, Any]) -> str:
    """Return the name of a metric in the table."""
    if name == "f1":
        return "f1 (mean over labels)" if facts["positive"] is None else f"f1 of {facts['positive']!r}"
    return f"pinball ({facts['quantile']:g})" if name == "pinball" else name.replace("_", " ")


def _notes(facts: dict[str, Any], several: bool) -> list[str]:
    target = "a target" if facts["task"] == "regression" else "a label"
    mean = " (mean of the repeats)" if several else ""
    texts = {
        "empty": ("instance", f"without any feature{mean}"),
        "unlabelled": ("instance", f"without {target}, not scored"),
        "skipped": ("row", "could not be read, skipped"),
    }
    notes = [f"{_counted(facts[key], noun)} {text}" for key, (noun, text) in texts.items() if facts[key]]
    if "requested" in facts:
        notes.append(
            "what is estimated: each requested label is weighted by the inverse of the chance that it was requested; "
            f"unweighted, the cer among them is {number(facts['requested']['plain'])}, which is biased"
        )
    return notes
