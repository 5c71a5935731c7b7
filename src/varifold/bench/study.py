"""A comparison of one's own: any data, any learners, in the machinery of the papers' tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from varifold.base.spec import parse_model
from varifold.bench.sources import file_name
from varifold.bench.table import Data, Method, Setting, Table
from varifold.errors import ParameterError

__all__ = ["define", "split_models", "study_table"]


def split_models(text: str) -> list[str]:
    """The learners of a list; commas also stand between the parameters of one: ``auto,olvf:C=0.1,B=0.5,pa``."""
    found: list[str] = []
    depth = 0
    for part in text.split(","):
        continues = depth > 0 or re.match(r"\s*\w+=", part)
        depth += part.count("(") - part.count(")")
        if continues and found:
            found[-1] += f",{part}"
        elif part.strip():
            found.append(part.strip())
    return found


def define(
    data: str, target: str | None, models: str, scenario: str, repeats: int, name: str | None = None
) -> dict[str, Any]:
    """The definition of a study, as it is stored; everything in it is checked."""
    from varifold.datasets import find
    from varifold.streams.scenarios.registry import SCENARIOS
    from varifold.streams.scenarios.spec import parse

    is_file = Path(data).is_file()
    if is_file and not target:
        raise ParameterError(f"--target COL is needed: which column of {data} holds the label?")
    if target and not is_file:
        raise ParameterError(f"there is no file {data!r} (--target is for files; a data set knows its own)")
    load = file_name(data, str(target)) if is_file else find(data).name
    listed = split_models(models)
    for text in listed:
        parse_model(text)
    if len(set(listed)) < len(listed) or not listed:
        raise ParameterError(f"the learners must be different and at least one. Got {models!r} instead.")
    parse(scenario, SCENARIOS)
    label = Path(data).name if is_file else data
    return {
        "name": name or re.sub(r"[^\w.-]+", "-", f"{label}-{scenario}").strip("-"),
        "data": label,
        "load": load,
        "models": listed,
        "scenario": scenario,
        "repeats": repeats,
    }


def study_table(name: str, raw: dict[str, Any]) -> Table:
    """A study as a table without printed numbers."""
    return Table(
        name=name or raw["name"],
        title=f"{raw['data']} ({raw['scenario']})",
        paper="",
        caption=f"{len(raw['models'])} learners on the same {raw['repeats']} streams",
        repeats=raw["repeats"],
        settings=(Setting(raw["scenario"], raw["scenario"], raw["scenario"]),),
        data=(Data(raw["data"], raw["load"]),),
        methods=tuple(Method(text, "", (text,), ()) for text in raw["models"]),
        metrics=("cer", "balanced_accuracy", "f1", "log_loss"),
        own=True,
    )
