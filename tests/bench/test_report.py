"""Content of a report: comparisons, gaps, page and Markdown."""

from __future__ import annotations

import html.parser
import re
from dataclasses import replace

import numpy as np
import pytest

from varifold.bench import Cell, Outcome, find_table, tables
from varifold.bench.cell import CURVE_POINTS, curve_ends
from varifold.bench.compare import fill, mark, tally
from varifold.bench.published import Published
from varifold.bench.statistics import rank
from varifold.bench.study import define, study_table
from varifold.report.figures import curve
from varifold.report.grids import result_grid, short, study_grid, time_grid
from varifold.report.markdown import heading, markdown
from varifold.report.page import page
from varifold.report.recipes import recipes
from varifold.report.svg import difference_diagram


def outcome(cer: float, instances: int = 100, seconds: float = 0.01) -> Outcome:
    curve = np.full(len(curve_ends(instances)), cer, dtype="<f4").tobytes()
    rest = dict.fromkeys(
        ("balanced_accuracy", "auroc", "auprc", "log_loss", "brier", "calibration_error", "majority_cer"), 0.5
    )
    return Outcome(
        cer=cer,
        accuracy=1 - cer,
        f1=0.5,
        majority_share=0.7,
        errors=round(100 * cer),
        scored=100,
        instances=instances,
        empty=0,
        names=9,
        known=9,
        weighted=5,
        curve=curve,
        loss_curve=curve,
        data_sha="d",
        stream_sha="s",
        seconds=seconds,
        wall=0.1,
        **rest,
    )


def outcomes(name: str, cer=lambda cell: 0.1, repeats: int = 2) -> dict[Cell, Outcome]:
    slots = find_table(name).slots(repeats)
    return {c: outcome(cer(c)) for s in slots for cells in s.cells.values() for c in cells if c.model != "auto"}


@pytest.fixture(scope="module")
def all_filled():
    """Every table, filled with two repeats of the same outcome."""
    return [fill(table, outcomes(name), repeats=2) for name, table in tables().items()]


def test_means_are_equal_within_two_standard_errors():
    table = fill(find_table("olvf-2"), outcomes("olvf-2", lambda c: 0.30 + 0.01 * c.seed))
    setting, data = next(table.table.places())
    number = table.number(setting, data, "OLVF", "default")
    assert number.mean("cer") == pytest.approx(0.305)

    def sign(mean: float, std: float | None = None, metric: str = "cer", repeats: int = 18) -> str:
        found = mark(number, Published("", "", "", metric, mean, std, 1, repeats=repeats), metric)
        assert found is not None
        return found.sign

    spread = number.std("cer")
    assert (round(spread, 5), len(number.outcomes)) == (0.00707, 2)
    # two standard errors: 2 sqrt(s^2 / 2 + s^2 / 18) = .01054, s the deviation of ours where none is printed
    assert sign(0.305 + 0.0109) == sign(0.305 - 0.0109) == "~", "and the rounding of print, .0005"
    assert sign(0.305 + 0.0111) == "+"
    assert sign(0.305 - 0.0111) == "-"
    assert sign(0.305 - 0.0111, 0.0) == "-", "a printed deviation of .000 is not one"
    assert sign(0.29, 0.03) == "~"
    assert sign(0.29, 0.03, repeats=1000) == "-"
    assert sign(0.69, metric="accuracy") == "~"
    assert sign(0.67, metric="accuracy") == "+"
    assert sign(0.75, metric="accuracy") == "-"


def test_one_stream_is_not_judged_without_a_printed_deviation():
    filled = fill(find_table("cwfe-2"), outcomes("cwfe-2"), repeats=1)
    number = filled.number(*next(filled.table.places()), "NOGD", "paper")
    assert len(number.outcomes) == 1
    printed = Published("", "", "", "accuracy", 0.4, None, 1, repeats=10)
    assert mark(number, printed, "accuracy") is None
    assert mark(number, replace(printed, std=0.01), "accuracy").sign == "+"


def test_averages_are_over_two_data_sets_or_more():
    filled = fill(find_table("orf3v-2"), outcomes("orf3v-2"))
    feet = {s.name: [title for title, _ in result_grid(filled, s, "", "cer").foot] for s in filled.table.settings}
    both = ["average", "average rank"]
    assert feet == {"TDS": both, "VFS 75% removed": both, "real VFS": []}


def test_the_best_of_a_search_is_shown_and_marked_as_tuned():
    found = outcomes("olvf-2", lambda c: 0.2 if c.model == "olvf:variant=printed,C=0.01,C_bar=0.001" else 0.4)
    filled = fill(find_table("olvf-2"), found)
    setting, data = next(filled.table.places())
    number = filled.number(setting, data, "OLVF", "paper")
    assert (number.text, number.tried) == ("olvf:variant=printed,C=0.01,C_bar=0.001", 15)
    assert number.mean("cer") == pytest.approx(0.2)
    best = filled.best(setting, data, "cer")
    assert best is not None
    assert best[:2] == ("OLVF", "default"), "a tuned number is never the best of ours"
    shown = result_grid(filled, setting, "", "cer").rows[0][1][1]
    assert "*" in shown.flag
    assert "best of 15 candidates, tuned on the stream" in shown.tip


def test_a_candidate_with_fewer_repeats_does_not_win():
    found = outcomes("olvf-2", lambda c: 0.2)
    lucky = [c for c in found if c.model == "olvf:variant=printed,C=1,C_bar=0.1"]
    found = {c: outcome(0.0) if c in lucky else o for c, o in found.items() if c not in lucky or c.seed == 0}
    filled = fill(find_table("olvf-2"), found)
    setting, data = next(filled.table.places())
    assert filled.number(setting, data, "OLVF", "paper").mean("cer") == pytest.approx(0.2)


def test_gaps_say_why():
    table = replace(find_table("olvf-2"), also=("nosuchmodel",))
    filled = fill(table, {})
    assert filled.gaps() == {"not run yet": 54, "nosuchmodel is not registered": 27}
    text = markdown([filled])
    assert "- 27 numbers: nosuchmodel is not registered" in text
    assert set(fill(find_table("asking"), {}).gaps()) == {"not run yet"}, "its learners are imported by module:Class"
    failing = next(c for s in table.slots() for cells in s.cells.values() for c in cells)
    filled = fill(table, {}, {failing: "DataError: no such file"})
    assert filled.gaps()["DataError: no such file"] == 1
    assert "no copy of HAPT" in " ".join(fill(find_table("ovfm-2"), {}).gaps())


def test_tally_counts_every_printed_cell_once():
    filled = [fill(find_table(name), outcomes(name, lambda c: 0.0)) for name in ("olvf-2", "olvf-5")]
    counted = tally(filled)
    assert counted.printed == 27 + 20
    for kind in ("paper", "default", "best"):
        assert counted.counts[kind]["+"] <= counted.counts[kind]["compared"] <= 47
    assert counted.counts["default"]["compared"] >= 37
    assert counted.counts["default"]["-"] == 0
    stand_in = tally([fill(find_table("orf3v-3"), outcomes("orf3v-3"))])
    assert stand_in.printed == 0, "numbers of made data are compared with nothing"


def test_times_are_ratios():
    table = find_table("cwfe-3")
    slots = list(table.slots(1))
    found = {
        c: outcome(0.1, seconds=0.02 if c.model.startswith("cwfe") else 0.01)
        for s in slots
        for cells in s.cells.values()
        for c in cells
    }
    grid = time_grid(fill(table, found), table.settings[0])
    name, cells = grid.rows[0]
    assert name == "Australian"
    assert [c.text for c in cells[:3]] == ["1.00", "1.00", "1.00"]
    place = [m.name for m in table.methods].index("CWFE-c")
    assert [c.text for c in cells[3 * place + 1 : 3 * place + 3]] == ["2.00", "2.00"]


def test_curves_end_where_the_stream_does():
    for instances in (1, 59, 60, 61, 351, 32561):
        ends = curve_ends(instances)
        assert ends[-1] == instances
        assert len(ends) <= CURVE_POINTS
    filled = fill(find_table("olvf-2"), outcomes("olvf-2"))
    setting, data = next(filled.table.places())
    at, mean, spread = curve(filled.number(setting, data, "OLVF", "default"))
    assert at[-1] == 100
    assert mean == pytest.approx(0.1)
    assert not spread.any()


class Checker(html.parser.HTMLParser):
    """Open and closed tags in order; no address outside the page."""

    VOID = ("meta", "path", "circle", "polyline", "polygon")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            assert key not in ("src", "onload")
            if key == "href":
                assert value.startswith("#")
                self.links.add(value[1:])
            if key == "id":
                assert value not in self.ids
                self.ids.add(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(all_filled):
    text = page(all_filled)
    assert not re.search(r"https?://|@import|url\(", text)
    assert "<script" not in text
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.links <= checker.ids
    assert set(tables()) <= checker.ids
    assert text.count("<h2>") >= len(tables()) + 2


@pytest.mark.parametrize("name", ["cwfe-3", "olvf-4", "orf3v-3"])
def test_a_single_table_describes_what_it_holds_and_counts_nothing_that_is_not_there(name):
    one = fill(find_table(name), outcomes(name, repeats=2), repeats=2)
    for text in (page([one]), markdown([one])):
        assert "0 of 0" not in text
        assert f"{one.table.title}, run again" in text
        assert "In how many printed cells" not in text
    two = [one, fill(find_table("olvf-2"), outcomes("olvf-2", repeats=2), repeats=2)]
    assert "In how many printed cells" in page(two)


def test_a_title_for_every_choice_of_tables():
    filled = {name: fill(find_table(name), {}) for name in ("olvf-2", "olvf-5", "ovfm-2")}
    own = fill(study_table("", define("synthetic", None, "olvf,arow", "vfs:0.5", 2)), {})
    assert heading([filled["olvf-2"], filled["olvf-5"]]) == "Tables of OLVF, run again"
    assert heading(list(filled.values())) == "The papers’ tables, run again"
    assert heading([own]) == "Learners on synthetic (vfs:0.5)"
    other = fill(study_table("", define("german", None, "olvf,arow", "none", 2)), {})
    assert heading([own, other]) == "Learners on synthetic (vfs:0.5) and german"
    third = fill(study_table("", define("wpbc", None, "olvf,arow", "none", 2)), {})
    assert heading([own, other, third]) == "Learners on synthetic (vfs:0.5), german and 1 more"


@pytest.mark.parametrize(("gap", "marked"), [(0.05, True), (0.001, False)])
def test_the_best_of_a_study_is_marked_unless_it_ties(gap: float, marked: bool):
    table = study_table("", define("synthetic", None, "olvf,arow", "vfs:0.5", 6))
    noise = np.random.default_rng(0).normal(0, 0.02, 6)

    def cer(cell: Cell) -> float:
        return 0.2 if cell.model == "olvf" else 0.2 + gap + float(noise[cell.seed])

    cells = [c for s in table.slots(6) for found in s.cells.values() for c in found]
    filled = fill(table, {c: outcome(cer(c)) for c in cells})
    signs = {name: row[0].sign for name, row in study_grid(filled, table.settings[0]).rows}
    assert signs == {"olvf": "▸" if marked else "", "arow": ""}


def test_markdown_tables_have_equal_columns(all_filled):
    width = None
    for line in markdown(all_filled).splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert width in (None, cells), line
            width = cells
        else:
            width = None


def test_difference_diagram_names_everything():
    found = rank(["a & b", "c", "d"], np.tile([0.1, 0.2, 0.3], (9, 1)))
    drawn = difference_diagram(found)
    for name in ("a &amp; b", "c", "d"):
        assert f">{name} <" in drawn
    assert f"CD {found.difference:.2f}" in drawn


def test_short():
    assert [short(v) for v in (0.3334, 1.0, 0.0, float("nan"))] == [".333", "1.000", ".000", "–"]


def test_the_notes_of_a_page_have_no_marks_of_markdown():
    html = page([fill(find_table(name), {}) for name in ("orf3v-2", "survey")])
    assert "<em>worst stump</em>" in html
    assert "<em>auto, balanced</em> (<code>objective=balanced</code>)" in html
    assert "*" not in re.sub(r"<style>.*?</style>", "", html, flags=re.S).replace('<b class="k">*</b>', "")


def test_a_table_shows_the_command_of_one_number_as_paper_and_with_defaults():
    lines = recipes(fill(find_table("olvf-2"), outcomes("olvf-2"), repeats=2))
    assert lines[0] == "varifold bench run olvf-2 --repeats 2"
    assert lines[2] == (
        "varifold run --as-paper olvf-2 --data german --model OLVF --scenario 'VFS removing ratio 0.25' --repeats 2"
    )
    assert lines[3].startswith("# OLVF, as paper, german: the best of 15: cer 0.")
    assert lines[4].startswith("varifold run --data german --scenario vfs:0.25 --model olvf ")
    assert recipes(fill(find_table("olvf-4"), {})) == ["varifold bench run olvf-3", "varifold bench report olvf-4"]


def test_a_report_of_some_methods_leaves_out_what_print_has_of_the_others():
    table = find_table("olvf-5")
    table = replace(table, methods=tuple(m for m in table.methods if m.name == "OLVF"), also=())
    filled = fill(table, outcomes("olvf-5"), repeats=2)
    assert {p.method for p in filled.printed.values()} == {"OLVF"}
    assert tally([filled]).printed == 10
    assert "OLSF (best" not in "".join(line for line in markdown([filled]).splitlines() if line.startswith("| german"))
