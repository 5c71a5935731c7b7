"""The tables shipped: complete, consistent with print, and made of names that exist."""

from __future__ import annotations

import math

import numpy as np
import pytest

from varifold import datasets
from varifold.base import models
from varifold.base.spec import parse_model
from varifold.bench import find_table, plan, tables
from varifold.bench.crowd import crowd, made
from varifold.bench.published import read_published
from varifold.bench.tables import table_from
from varifold.bench.work import spec_of
from varifold.errors import UnknownNameError
from varifold.streams.scenarios.registry import SCENARIOS
from varifold.streams.scenarios.spec import parse

NAMES = [
    *("olvf-2", "olvf-3", "olvf-4", "olvf-5", "ovfm-2", "orf3v-2", "orf3v-3", "cwfe-2", "cwfe-3"),
    *("ovfiv-2", "ovfiv-3", "ovfiv-4", "ovfiv-5", "survey"),
]


def test_every_result_table_of_the_papers_is_there():
    assert list(tables()) == NAMES
    with pytest.raises(UnknownNameError, match="did you mean olvf-2"):
        find_table("olvf2")


@pytest.mark.parametrize("name", NAMES)
def test_every_printed_cell_has_its_place(name):
    table = find_table(name)
    if table.parameters:
        assert table.parameters in tables()
        return
    assert {p.setting for p in table.published} == {s.name for s in table.settings}
    assert {p.data for p in table.published} == {d.name for d in table.data}
    assert {p.method for p in table.published} == {m.name for m in table.methods}
    assert all(p.metric in table.metrics for p in table.published)
    for method in table.methods:
        places = {*(d.name for d in table.data), *(f"{s.name}/{d.name}" for s in table.settings for d in table.data)}
        assert set(method.by_data) <= places


@pytest.mark.parametrize("name", NAMES)
def test_data_scenarios_and_models_exist(name):
    table = find_table(name)
    for setting, data in table.places():
        parse("+".join(s for s in (data.before, setting.scenario) if s), SCENARIOS)
        if data.load.startswith("made:"):
            continue
        if not data.gap:
            assert datasets.find(data.load).name == data.load
    for cell in plan([table], 1):
        if cell.model.partition(":")[0] in models:
            spec_of(cell)()


@pytest.mark.parametrize("name", NAMES)
def test_remarks_are_about_printed_cells(name):
    table = find_table(name)
    for remark in (*table.doubts, *table.reasons):
        assert any(remark.covers(cell) for cell in table.published), remark


def test_printed_numbers_as_rates():
    cells = read_published("olvf_table2.csv")
    german = next(c for c in cells if c.data == "german" and c.setting.endswith("0.25"))
    assert german.metric == "cer"
    assert german.mean == pytest.approx(0.3334)
    assert german.std == pytest.approx(0.0097)
    lost = [c for c in read_published("ovfm_table2.csv") if c.mean is None]
    assert [(c.setting, c.data, c.method) for c in lost] == [("capricious", "dna", "FOBOS")]
    assert all(c.data != "average rank" for c in read_published("ovfiv_table2.csv"))
    times = read_published("cwfe_table3.csv")
    assert times[0].mean == pytest.approx(0.0034)


def test_tables_share_cells():
    """What several tables ask for is run once."""
    together = plan(tables().values(), 1)
    assert len(together) < sum(len(plan([t], 1)) for t in tables().values())
    assert set(plan([find_table("cwfe-3")], 1)) <= set(plan([find_table("cwfe-2")], 1))


def test_as_paper_does_not_scale_again():
    cells = [c for c in plan([find_table("olvf-2")], 1) if c.data == "german" and c.scenario == "vfs:0.25"]
    treated = {(c.scale, spec_of(c)().scale, spec_of(c)().fit_intercept) for c in cells if c.model.startswith("olvf")}
    assert treated == {("zscore", "none", False), ("none", "robust", True)}


def test_as_paper_with_an_intercept_has_no_majority_bias():
    cells = [c for c in plan([find_table("ovfm-2")], 1) if c.data == "diabetes"]
    treated = {(c.model, spec_of(c)().majority_bias) for c in cells if c.model == "ocds" and c.overrides}
    assert treated == {("ocds", False)}


def test_ovfm_on_latent_values_alone_is_run_as_the_paper_runs_ovfm():
    table = find_table("ovfm-2")
    slots = {(s.setting.name, s.data.name, s.column): s for s in table.slots(1) if s.method == "OVFM"}
    for (setting, data, column), slot in slots.items():
        if column == "OVFM-L" and slot.cells:
            ((cell,),) = slot.cells.values()
            ((other,),) = slots[setting, data, "paper"].cells.values()
            assert (cell.scenario, cell.scale, cell.overrides) == (other.scenario, other.scale, other.overrides)
            ours, theirs = spec_of(cell)()._get_params(), spec_of(other)()._get_params()
            assert ours == {**theirs, "latent_only": True}
    assert ("capricious", "diabetes", "OVFM-L") in slots


def test_a_table_without_printed_numbers_has_no_column_as_paper():
    raw = {
        "title": "",
        "paper": "",
        "caption": "",
        "repeats": 1,
        "setting": [{"name": "half", "scenario": "vfs:0.5"}],
        "data": [{"name": "wbc"}],
    }
    plain = table_from("mine", {**raw, "method": [{"name": "arow", "default": "arow"}]})
    assert [slot.column for slot in plain.slots(1)] == ["default"]
    both = table_from("mine", {**raw, "method": [{"name": "arow", "default": "arow", "paper": "arow:r=1"}]})
    assert [slot.column for slot in both.slots(1)] == ["paper", "default"]


def test_repeats_are_capped_where_the_table_limits_them():
    table = find_table("olvf-2")
    seeds = {d.name: len(table.seeds(table.settings[0], d, None)) for d in table.data}
    assert seeds["german"] == 20
    assert seeds["a8a"] == 5
    assert len(table.seeds(table.settings[0], table.data[0], 3)) == 3


def test_lengths_are_filled_in():
    cells = [c for c in plan([find_table("cwfe-2")], 1) if c.model.startswith("cwfe:combine=c") and c.overrides]
    diabetes = next(c for c in cells if c.data == "diabetes")
    assert diabetes.model == "cwfe:combine=c,switch=384,horizon=384,r=0.1"


def test_crowd_sensing_stream_varies():
    readings = crowd(3000)
    there = ~np.isnan(readings.values)
    assert there.sum(axis=1).max() <= 8
    assert 0 < there.any(axis=1).mean() <= 1
    first = np.array([np.argmax(column) if column.any() else math.inf for column in there.T])
    assert (first > 1000).sum() > 20, "sensors join late"
    assert sorted(set(readings.severity[:, 2])) == [0, 1]
    assert sorted(set(readings.severity[:, 0])) == [0, 1, 2, 3]
    assert np.array_equal(crowd(3000).values, readings.values, equal_nan=True)
    binary, levels = made("made:crowd:1:binary"), made("made:crowd:1:levels")
    assert list(binary.block.labels.values) == [0, 1]
    assert list(levels.block.labels.values) == [0, 1, 2, 3]
    with pytest.raises(UnknownNameError, match="made:crowd:9"):
        made("made:crowd:9:binary")


def test_specifications_of_registered_models_parse():
    texts = {c.model for t in tables().values() for c in plan([t], 1)}
    known = {t for t in texts if t.partition(":")[0] in models}
    assert known
    for text in known:
        parse_model(text)
