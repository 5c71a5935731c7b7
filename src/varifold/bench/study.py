"""A user's comparison: any data and learners, run like the papers' tables."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from varifold.base.learner import is_detector, is_regressor
from varifold.base.plural import plural
from varifold.base.spec import parse_model, parse_spec, regressor_for
from varifold.bench.sources import file_name
from varifold.bench.table import Data, Method, Setting, Table
from varifold.datasets.registry import Entry
from varifold.errors import ParameterError
from varifold.streams.readers.sources import OWN_LABELS

__all__ = ["check_models", "define", "split_models", "study_table"]

LABELS = ("cer", "balanced_accuracy", "f1", "auroc", "auprc", "log_loss")
NUMBERS = ("mae", "rmse", "r2", "mape", "pinball")
"""Metrics of a study, by what is predicted."""


def split_models(text: str) -> list[str]:
    """Split a list of learners; commas also separate the parameters of one: ``auto,olvf:C=0.1,B=0.5,pa``."""
    texts: list[str] = []
    depth = 0
    for part in text.split(","):
        continues = depth > 0 or re.match(r"\s*\w+=", part)
        depth += part.count("(") - part.count(")")
        if continues and texts:
            texts[-1] += f",{part}"
        elif part.strip():
            texts.append(part.strip())
    return texts


def define(
    data: str | Sequence[str],
    target: str | None,
    models: str,
    scenario: str,
    repeats: int,
    name: str | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    shuffle: bool | None = None,
) -> dict[str, Any]:
    """Check and return the definition of a study, as it is stored.

    Parameters
    ----------
    data
        A registered data set, or files that are read one after the other.
    target
        The label column of files.
    models, scenario, repeats, name
        Learners, scenario, number of streams, and the name in reports (by default made of the others). If one of the
        learners is a regressor, or the target a number, the others become regressors, too.
    reading
        Options of `streams.read` for files.
    shuffle
        Whether rows are permuted; by default those of a data set are, those of files and natural streams keep their
        order.

    """
    from varifold.streams.scenarios.registry import SCENARIOS
    from varifold.streams.scenarios.spec import parse

    paths = [data] if isinstance(data, str) else list(data)
    is_file = Path(paths[0]).is_file() or len(paths) > 1
    listed = check_models(models)
    if any(is_detector(parse_model(text, imports=True, detectors=True).cls) for text in listed):
        raise ParameterError("detectors predict no target; compare them with `varifold bench run anomaly --models ...`")
    options = dict(reading or {})
    entry = None if is_file else _data_set(paths[0], target, options)
    load = _files(paths, target, options) if entry is None else entry.name
    numeric = _is_numeric(listed, entry, paths, target, options)
    if numeric:
        listed = [regressor_for(parse_model(text, imports=True)).text for text in listed]
        load = file_name(paths, target, {**options, "target_type": "number"}) if entry is None else load
    parse(scenario, SCENARIOS)
    label = " ".join(Path(path).name for path in paths) if is_file else paths[0]
    return {
        "name": name or re.sub(r"[^\w.-]+", "-", f"{_short(label, load)}-{scenario}").strip("-"),
        "data": label,
        "load": load,
        "models": listed,
        "scenario": scenario,
        "repeats": repeats,
        "shuffle": (entry is not None and not entry.order) if shuffle is None else shuffle,
        **({"task": "regression"} if numeric else {}),
        **({"named": True} if name else {}),
    }


def _is_numeric(
    models: list[str], entry: Entry | None, paths: list[str], target: str | None, reading: Mapping[str, Any]
) -> bool:
    """Return whether this is regression: of the data set, of a learner, or because the files' target is a number."""
    from varifold.streams import read

    if entry is not None and entry.task == "regression":
        return True
    if any(is_regressor(parse_model(text, imports=True).cls) for text in models):
        return True
    kind = reading.get("target_type")
    if kind is None and entry is None:
        kind = read(paths, target=target, **reading).target_type
    return kind == "number"


def _short(label: str, load: str) -> str:
    """Return the names of the files; of many the first, their number, and a few digits that identify them."""
    files = label.split(" ")
    if len(files) <= 3:
        return label
    return f"{files[0]} and {len(files) - 1} more {zlib.crc32(load.encode()):08x}"


def check_models(models: str) -> list[str]:
    """Return the learners of a list; raise an error if one cannot be made or occurs twice."""
    listed = split_models(models)
    listed = [parse_spec(text, imports=True, detectors=True).text for text in listed]
    if len(set(listed)) < len(listed) or not listed:
        raise ParameterError(f"the learners must be different and at least one. Got {models!r} instead.")
    return listed


def _files(paths: list[str], target: str | None, reading: Mapping[str, Any]) -> str:
    for path in paths:
        if not Path(path).is_file():
            raise ParameterError(f"there is no file {path!r}")
    own_labels = reading.get("format") == "svmlight" or all(path.endswith(OWN_LABELS) for path in paths)
    if not target and not own_labels:
        raise ParameterError(f"--target COL is needed: which column of {paths[0]} holds the label?")
    return file_name(paths, target, reading)


def _data_set(name: str, target: str | None, reading: Mapping[str, Any]) -> Entry:
    from varifold.datasets import find

    others = [option for option in reading if option != "target_type"]
    if target or others:
        option = "target" if target else others[0].replace("_", "-")
        raise ParameterError(f"there is no file {name!r} (--{option} is for files; a data set knows its own)")
    return find(name)


def _title(data: str, scenario: str) -> str:
    """Return the title of the data: of many files, the first and the number of the others."""
    files = data.split(" ")
    shown = data if len(files) <= 3 else f"{files[0]} and {len(files) - 1} more files"
    return shown if scenario == "none" else f"{shown} ({scenario})"


def study_table(name: str, raw: dict[str, Any]) -> Table:
    """Make a table of a study, without printed numbers; a fixed order and no scenario make one stream."""
    shuffle = raw["shuffle"]
    fixed = not shuffle and raw["scenario"] == "none"
    repeats = 1 if fixed else raw["repeats"]
    streams = "the same stream" if repeats == 1 else f"the same {repeats} streams"
    order = "" if shuffle else ", rows in their order"
    return Table(
        name=name or raw["name"],
        title=(f"{raw['name']}: " if raw.get("named") else "") + _title(raw["data"], raw["scenario"]),
        paper="",
        caption=f"{plural(len(raw['models']), 'learner')} on {streams}{order}",
        repeats=repeats,
        settings=(Setting(raw["scenario"], raw["scenario"], raw["scenario"], shuffle, 1 if fixed else None),),
        data=(Data(raw["data"], raw["load"]),),
        methods=tuple(Method(text, "", (text,), ()) for text in raw["models"]),
        metrics=NUMBERS if raw.get("task") == "regression" else LABELS,
        own=True,
    )
