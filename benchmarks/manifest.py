"""Compare every registered data set as loaded with the manifest of the data directory and docs/data-sets.md.

    VARIFOLD_DATA=DIR python -m benchmarks.manifest

Prints rows x features of the manifest (matched by file) and of `datasets.load`, the labels, the absent cells, and
whether docs/data-sets.md agrees. Exits with 1 if it does not, or if it does not explain a difference from the manifest.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from varifold import datasets
from varifold.datasets import Entry
from varifold.streams.scenarios.columns import Columns

PAGE = Path(__file__).parents[1] / "docs" / "data-sets.md"


def manifest() -> dict[str, Any]:
    """Return the manifest's entry of each file by path."""
    text = (Path(os.environ["VARIFOLD_DATA"]) / "MANIFEST.toml").read_text(encoding="utf-8")
    return {f["path"]: {**d, **f} for d in tomllib.loads(text)["dataset"] for f in d["file"]}


def size(known: dict[str, Any]) -> str:
    """Format rows x features; an entry of several sets has them in its text, by file name."""
    if "rows" in known:
        return f"{known['rows']:,} x {known['features']:,}"
    found = re.search(rf"\b{Path(known['path']).stem} (\d+)x(\d+)", known["mismatch"])
    return "–" if found is None else f"{int(found[1]):,} x {int(found[2]):,}"


def explained() -> dict[str, list[str]]:
    """Return the cells of each row of the page, by name."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row for row in cells}


def loaded(entry: Entry) -> list[str]:
    """Return rows x features, labels and absent cells of the loaded data set."""
    block = datasets.load(entry.name).block
    width = Columns(block).width
    counts = np.bincount(block.codes, minlength=len(block.labels)).tolist()
    labels = ", ".join(f"{y} {count:,}" for y, count in zip(block.labels.values, counts, strict=True))
    columns = block.vocabulary.column_array()[block.indices].astype(np.int64)
    rows = np.repeat(np.arange(len(block), dtype=np.int64), np.diff(block.indptr))
    present = len(np.unique(rows * (int(columns.max(initial=0)) + 1) + columns))
    return [f"{len(block):,} x {width:,}", labels, f"{len(block) * width - present:,}"]


def main() -> int:
    """Print the table and report whether the page is correct."""
    files, page = manifest(), explained()
    wrong = 0
    print("| name | manifest | loaded | labels | absent | explained | page |\n|---|---|---|---|---|---|---|")
    for entry in [e for e in map(datasets.find, datasets.names()) if e.group != "natural"]:
        known = files.get(entry.files[0].path) if entry.files else None
        there = "–" if known is None else size(known)
        row = page.get(entry.name, [""] * 6)
        made = ["–", "–", "–"] if "not there" in row[1] else loaded(entry)
        same = row[2:5] == made and (there in (row[1], "–"))
        differs = there not in ("–", made[0])
        wrong += not same or (differs and not row[5])
        print(
            f"| {entry.name} | {there} | {' | '.join(made)} | {row[5]} | {'true' if same else row[1:5]} |", flush=True
        )
    print(f"\n{wrong} rows of {PAGE.name} are not true")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
