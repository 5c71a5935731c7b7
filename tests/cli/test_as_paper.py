"""``varifold run --as-paper``: one number of a paper's table."""

import re

import pytest

from varifold.bench import find_table
from varifold.bench.work import measure
from varifold.cli import main


@pytest.mark.real_data
def test_it_is_the_number_of_the_table(capsys):
    words = ["--as-paper", "ovfm-2", "--data", "WBC", "--model", "fobos", "--scenario", "capricious", "--repeats", "2"]
    assert main(["run", *words]) == 0
    out = capsys.readouterr().out
    assert "OVFM, Table II, capricious, wbc, FOBOS, as paper; 2 of 10 repeats" in out
    assert "stream mixed:bins=text+capricious:mode=atmost, scale minmax" in out
    slot = next(
        s
        for s in find_table("ovfm-2").slots(2)
        if (s.setting.name, s.data.name, s.method, s.column) == ("capricious", "wbc", "FOBOS", "paper")
    )
    (cells,) = slot.cells.values()
    mean = sum(measure(cell).cer for cell in cells) / 2
    assert re.search(rf"cer +{mean:.4f} +0\.\d+ +0\.1310 +better +fobos:eta=1", out)


@pytest.mark.real_data
def test_the_learner_shown_has_the_length_of_the_stream(capsys):
    words = ["--as-paper", "ovfm-2", "--data", "wbc", "--model", "OVFM", "--scenario", "capricious", "--repeats", "1"]
    assert main(["run", *words]) == 0
    assert "ovfm:base=sgd,radius=30,presence=false,horizon=699" in capsys.readouterr().out


@pytest.mark.real_data
def test_one_stream_is_not_judged_where_print_has_no_deviation(capsys):
    words = ["--as-paper", "cwfe-2", "--data", "Diabetes", "--model", "NCW", "--repeats", "1"]
    assert main(["run", *words]) == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"accuracy +0\.\d+ +nan +0\.\d+ +needs more streams +cwfe", out)) == 1


@pytest.mark.real_data
def test_the_only_setting_of_a_method_may_be_left_out(capsys):
    assert main(["run", "--as-paper", "ovfm-2", "--data", "wbc", "--model", "OLSF", "--repeats", "1"]) == 0
    assert "OVFM, Table II, trapezoidal, wbc, OLSF, as paper; 1 of 10 repeats" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ovfm-3", "--data", "wbc"], "there is no table 'ovfm-3'"),
        (["ovfm-2"], "--as-paper needs a data set of the table"),
        (["ovfm-2", "--data", "wbc", "--model", "OVFM"], "--scenario is needed: one of trapezoidal, capricious"),
        (["ovfm-2", "--data", "wcb", "--scenario", "capricious"], "no 'wcb'; did you mean wbc"),
        (["ovfm-2", "--data", "wbc", "--scenario", "capricious", "--scale", "none"], "--scale cannot be combined"),
        (["ovfm-2", "--data", "HAPT", "--scenario", "capricious", "--model", "OVFM"], "no copy of HAPT is available"),
        (["ovfm-2", "--data", "wbc", "--scenario", "capricious", "--model", "OLSF"], "one with --scenario trapezoidal"),
        (["olvf-4", "--data", "wbc"], "a table of parameters; its numbers are those of olvf-3"),
    ],
)
def test_what_the_table_does_not_have(words, message, capsys):
    assert main(["run", "--as-paper", *words]) == 2
    assert message in capsys.readouterr().err
