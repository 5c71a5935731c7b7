"""Protocols of the tables: treatment of the data, variants next to the literal one, printed cells in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.test_report import outcomes
from varifold import Block, datasets
from varifold.bench import Cell, find_table, tables
from varifold.bench.compare import fill, largest_gaps, tally, won
from varifold.bench.sources import coded, stream_of
from varifold.bench.table import Remark
from varifold.bench.work import measure, spec_of
from varifold.report.grids import result_grid
from varifold.report.markdown import markdown
from varifold.report.page import page
from varifold.report.ranks import group_sentences


def test_string_columns_as_codes():
    rows = [{"a": "x", "n": 2.0}, {"a": "z"}, {"a": "b", "n": 1.0}, {"a": "x"}]
    block = coded(Block.from_dicts(rows, list("ppqq")))
    assert list(block.rows()) == [{"a": 1.0, "n": 2.0}, {"a": 2.0}, {"a": 0.0, "n": 1.0}, {"a": 1.0}]
    assert list(block.codes) == [0, 0, 1, 1]
    in_file_order = coded(Block.from_dicts(rows, list("ppqq")), alphabetical=False)
    assert [x["a"] for x in in_file_order.rows()] == [0.0, 1.0, 2.0, 0.0]


@pytest.mark.real_data
def test_values_are_coded_in_the_order_that_the_file_declares():
    rows = list(coded(datasets.load("credit-g").block, alphabetical=False).rows())
    strings = list(datasets.load("credit-g").block.rows())
    codes = {x["checking_status"]: row["checking_status"] for x, row in zip(strings, rows, strict=True)}
    assert codes == {"<0": 0.0, "0<=X<200": 1.0, ">=200": 2.0, "no checking": 3.0}


@pytest.mark.real_data
def test_the_label_of_the_f_measure():
    cell = Cell("diabetes", "none", True, "none", "nb3", "", 0)
    usual, other = measure(cell), measure(replace(cell, scale="positive=0"))
    assert other.cer == usual.cer
    assert other.f1 != usual.f1
    assert stream_of(replace(cell, scale="positive=0")).positive == "0"


def test_as_paper_treats_the_data_as_the_table_states():
    slots = list(find_table("cwfe-2").slots(1))

    def scale(data, column):
        return {
            c.scale
            for s in slots
            if s.data.name == data and s.column == column and s.method != "auto"
            for cells in s.cells.values()
            for c in cells
        }

    assert scale("Credit-g", "paper") == {"filecodes"}
    assert scale("Credit-g", "default") == {"none"}
    assert scale("Australian", "paper") == scale("Australian", "default") == {"positive=0"}
    imdb = [c for s in find_table("olvf-5").slots(1) if s.data.name == "imdb" for cs in s.cells.values() for c in cs]
    assert {c.scale for c in imdb} == {"none"}
    codes = {c.scale for s in find_table("ovfiv-2").slots(1) for cs in s.cells.values() for c in cs}
    assert codes == {"codes+zscore", "none"}


def test_a_variant_has_its_scenario_and_parameters():
    slots = [s for s in find_table("cwfe-2").slots(1) if s.column == "new space from the start"]
    assert {s.method for s in slots} == {"NOGD", "NPA-d", "NCW"}
    cell = next(
        c for s in slots if s.method == "NCW" and s.data.name == "Diabetes" for cs in s.cells.values() for c in cs
    )
    assert (cell.scenario, cell.model) == ("evolvable:overlap=384,show=new", "cwfe:part=new,switch=768,r=0.1")
    settings = {s.setting.name for s in find_table("ovfiv-4").slots(1) if s.column == "first half, flipped"}
    assert settings == {"informative"}


def test_variants_are_shown_and_counted_apart():
    table = find_table("ovfiv-2")
    found = outcomes("ovfiv-2", lambda c: 0.0 if "half=first" in c.scenario else 0.9)
    one = fill(table, found)
    counted = tally([one])
    assert counted.counts["paper"]["+"] == 0
    assert counted.counts["variants"]["+"] == counted.counts["variants"]["compared"] > 100
    setting, data = next(table.places())
    best = one.best(setting, data, "cer")
    assert best is not None
    assert best[1] in ("paper", "default"), "a variant is never the best of ours"
    grid = result_grid(one, setting, table.groups()[0], "cer")
    assert "first half, flipped" in grid.columns
    for text in (markdown([one]), page([one])):
        assert "first half, flipped" in text
        assert "rate .3 for the negative label" in text


def test_printed_cells_in_doubt_are_marked():
    one = fill(find_table("cwfe-2"), {})
    marked = [p for p in one.printed.values() if one.doubt(p)]
    assert {p.data for p in marked} == {"Australian", "Credit-g", "German", "Kr-vs-kp", "Svmguide3"}
    assert {p.metric for p in marked} == {"accuracy"}
    assert all(p.mean > 0.74 for p in marked)
    text = markdown([one])
    assert ".868?" in text
    assert "offline ridge that has seen all rows" in text


def test_three_methods_of_a_base_are_compared_among_themselves():
    table = find_table("ovfiv-2")
    worst = {"variation": 0.4, "ovfiv": 0.1}
    one = fill(table, outcomes("ovfiv-2", lambda c: worst.get(c.model.partition(":")[0], 0.2)))
    lines = group_sentences(one, table.settings[0], "base Naive", "cer")
    assert [line.partition(":")[0] for line in lines] == ["printed", "as paper", "defaults", "first half, flipped"]
    assert "Nemenyi p of Naive / ensemble OVFIV-ca against Naive / variation-classifier" in lines[1]
    assert "Naive / feature-classifier 0.0099." in lines[1]
    assert "is significantly better in 34 of 34 paired t-tests and worse in 0." in lines[1]
    assert "3 entries over 17 data sets: Friedman χ² = 34.00" in lines[1]
    assert "ensemble OVFIV-ca 1.00" in lines[1]
    assert group_sentences(fill(find_table("olvf-5"), {}), find_table("olvf-5").settings[0], "", "cer") == []


@pytest.mark.parametrize("name", ["ovfm-2", "orf3v-2", "ovfiv-2"])
def test_ovfm_as_in_its_paper_knows_the_length_of_the_stream(name):
    models = {c.model for s in find_table(name).slots(1) if s.column == "paper" for cs in s.cells.values() for c in cs}
    assert all("horizon=" in m for m in models if "ovfm:" in m)
    assert all("variant=printed" in m for m in models if m.startswith("olvf"))


def test_the_survey_next_to_ours():
    table = find_table("survey")
    assert [m.name for m in table.methods if m.gap] == ["AuxNet", "AuxDrop"]
    places = list(table.places())
    assert len([s for s, d in places if s.scenario != "none"]) == 39
    best = {"auto": 0.999, "auto:objective=balanced": 1.0}
    found = {c: replace(o, balanced_accuracy=best.get(c.model, 0.0)) for c, o in outcomes("survey").items()}
    found |= {
        c: replace(next(iter(found.values())), balanced_accuracy=0.999)
        for s in table.slots(2)
        if s.method == "auto"
        for cells in s.cells.values()
        for c in cells
    }
    one = fill(table, found)
    counts, total = won(one)
    assert counts == {"auto": total, "auto, balanced": total}
    assert total == len(places) == 40
    grid = result_grid(one, table.settings[0], "", "balanced_accuracy")
    assert "auto, balanced" in grid.columns
    assert [name for name, width in grid.spans if width == 1] == ["AuxNet", "AuxDrop"], "printed alone"
    assert "printed" not in result_grid(one, table.settings[0], "", "auroc").columns
    text = markdown([one, fill(find_table("olvf-2"), outcomes("olvf-2"))])
    assert f"Places of {total} in which ours is above the best printed number" in text
    row = next(line for line in text.splitlines() if line.startswith("| all |"))
    assert row.split("|")[2].strip() == "27", "the survey is not counted among the papers"


def test_the_numbers_furthest_behind_print_are_listed_with_their_reason():
    worst = {"german": 0.9, "wbc": 0.5}
    found = outcomes("olvf-2", lambda c: worst.get(c.data, 0.0) if c.overrides else 0.0)
    table = find_table("olvf-2")
    table = replace(table, reasons=(Remark("no intercept in the paper", "german"),))
    one = fill(table, found)
    gaps = largest_gaps([one])
    assert [g.printed.data for g in gaps] == ["german"] * 3 + ["wbc"] * 3
    assert [g.why for g in gaps[2:4]] == ["no intercept in the paper", ""]
    assert gaps[0].size == pytest.approx(0.9 - 0.3334, abs=1e-3)
    ahead = largest_gaps([one], better=True)
    assert len(ahead) == 10
    assert ahead[0].printed.data == "wpbc", "the largest printed error among those that ours has as 0"
    assert ahead[0].size == pytest.approx(ahead[0].printed.mean)
    text = markdown([one])
    assert "## The as-paper numbers furthest ahead of print" in text
    assert (
        "| OLVF, Table 2, VFS removing ratio 0.25, german, OLVF, error rate | .333 | .900 | .567 | no intercept" in text
    )
    assert text.count("no intercept in the paper |") == 1, "a reason is given once"
    assert text.count(" | As for OLVF on german above. |") == 2
    assert "not known" in text
    html = page([one])
    assert "furthest behind print" in html
    assert '<td class="text">no intercept in the paper</td>' in html, "broken into lines"
    assert "furthest behind print" not in markdown([fill(table, {})])


def test_as_paper_cells_have_nothing_that_the_papers_do_not():
    """Neither calibrated probabilities nor a majority bias nor scaling while learning."""
    cells = {
        (cell.model, cell.overrides): cell
        for table in tables().values()
        for slot in table.slots(1)
        if slot.column != "default"
        for candidates in slot.cells.values()
        for cell in candidates
    }
    assert len(cells) > 50
    for cell in cells.values():
        learner = spec_of(cell)()
        for name, value in (("calibrate", False), ("scale", "none"), ("majority_bias", False)):
            if hasattr(learner, name) and (name != "majority_bias" or learner.fit_intercept):
                assert getattr(learner, name) == value, (cell.model, name)
