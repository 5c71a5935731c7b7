"""The committed results are what the code gives: a slice of them is made again."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from varifold.bench import tables
from varifold.bench.compare import fill
from varifold.bench.statements import STATEMENTS
from varifold.cli import main
from varifold.report.grids import METRIC
from varifold.report.markdown import LEGEND
from varifold.report.recipes import readings
from varifold.report.statements import RULES

RESULTS = Path(__file__).parents[2] / "benchmarks" / "RESULTS.md"
DATA = "wpbc"


def rows(text: str, table: str) -> list[str]:
    """The rows of a data set in the result tables of a section: printed, as in the paper, library defaults."""
    section = text.partition(f"## {table}\n")[2].partition("\n## ")[0]
    shown = re.sub(r"<details>.*?</details>", "", section, flags=re.S)
    return ["|".join(line.split("|")[:5]) for line in shown.splitlines() if line.startswith(f"| {DATA} |")]


@pytest.mark.real_data
def test_a_slice_of_the_results_is_made_again(tmp_path):
    committed = RESULTS.read_text(encoding="utf-8")
    found = re.search(r"varifold bench run olvf-3 --repeats (\d+)", committed)
    assert found is not None
    made = tmp_path / "made.md"
    command = ["bench", "run", "olvf-3", "--only", DATA, "--repeats", found[1], "--store", str(tmp_path / "s.sqlite")]
    assert main([*command, "--markdown", str(made)]) == 0
    again = rows(made.read_text(encoding="utf-8"), "OLVF, Table 3")
    assert len(again) == 1
    assert again == rows(committed, "OLVF, Table 3")


@pytest.mark.parametrize("name", sorted(tables()))
def test_the_committed_texts_are_those_of_the_tables(name):
    table = tables()[name]
    section = RESULTS.read_text(encoding="utf-8").partition(f"\n## {table.title}\n")[2].partition("\n## ")[0]
    notes = [*table.notes, *readings(fill(table, {}))]
    assert [note for note in notes if f"\n- {note}\n" not in section] == []
    assert section.startswith(f"\n{table.caption}.\n")
    shown = not table.parameters and not table.relative_to
    places = itertools.product(table.settings, table.groups(), table.metrics) if shown else ()
    headings = [", ".join(text for text in (s.title, group, METRIC[metric]) if text) for s, group, metric in places]
    assert re.findall(r"^### (.*)$", section, flags=re.M) == headings


def test_the_committed_claims_are_those_that_are_tested():
    committed = RESULTS.read_text(encoding="utf-8")
    claims = re.findall(r"^\| ([^|]+) \| (holds|does not hold|cannot be tested) \|", committed, flags=re.M)
    assert [claim for claim, _ in claims] == [s.claim for s in STATEMENTS]
    count = [sum(verdict == word for _, verdict in claims) for word in ("holds", "does not hold", "cannot be tested")]
    expected = (
        f"Of {len(claims)} claims, {count[0]} hold in our as-paper columns, {count[1]} do not, and {count[2]} cannot"
    )
    assert expected in committed
    assert LEGEND in committed
    assert f"columns, {count[1]} do not, and {count[2]} cannot be tested. {RULES}\n" in committed
