"""The command: lists, runs, resumes, reports; own data and own learners."""

from __future__ import annotations

import random
import re
import sys

import pytest
from joblib import register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from varifold.bench import Store, run
from varifold.bench.study import define, split_models, study_table
from varifold.cli import main

LEARNER = '''
from varifold import OLVF

class Mine(OLVF):
    """A learner of somebody else's."""

class Broken(OLVF):
    """It cannot learn."""
    def run_block(self, block, schedule=None):
        raise ZeroDivisionError("it broke")
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a learner of one's own, to work in."""
    (tmp_path / "bench_learners.py").write_text(LEARNER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("bench_learners", None)


def test_list_names_every_table(tmp_path, capsys):
    assert main(["bench", "list", "--store", str(tmp_path / "s.sqlite")]) == 0
    out = capsys.readouterr().out
    for name in ("olvf-2", "ovfm-2", "orf3v-3", "cwfe-3", "ovfiv-5"):
        assert re.search(rf"^{name} ", out, re.M)
    assert not (tmp_path / "s.sqlite").exists(), "listing writes nothing"


def test_own_learner_on_a_registered_set(own, capsys):
    command = ["bench", "run", "--data", "synthetic", "--models", "olvf,bench_learners:Mine", "--scenario", "vfs:0.5"]
    assert main([*command, "--repeats", "2"]) == 0
    shown = capsys.readouterr()
    lines = [line.split("|") for line in shown.out.splitlines() if line.startswith("| ")]
    rows = {line[1].strip(): line[2:6] for line in lines}
    assert rows["olvf"] == rows["bench_learners:Mine"], "the same learner under another name"
    assert "4 cells run" in shown.err
    assert main([*command, "--repeats", "3"]) == 0
    assert "2 cells run" in capsys.readouterr().err, "more repeats run only what is new"
    assert main(["bench", "report", "--html", "r.html", "--markdown", "r.md"]) == 0
    text = (own / "r.md").read_text()
    assert "## synthetic (vfs:0.5)" in text
    assert "## OLVF, Table 2" in text
    assert "bench_learners:Mine" in (own / "r.html").read_text()


def test_own_file_with_a_learner_of_river(own, capsys):
    draw = random.Random(1)
    lines = [f"{'' if draw.random() < 0.2 else y + draw.gauss(0, 0.5)},{'ab'[y]},{y}" for y in [0, 1] * 60]
    (own / "mine.csv").write_text("pressure,valve,trip\n" + "\n".join(lines) + "\n")
    command = ["bench", "run", "--data", "mine.csv", "--target", "trip", "--scenario", "vfs:0.5", "--repeats", "2"]
    assert main([*command, "--models", "olvf:C=0.1,B=0.5,river.naive_bayes:GaussianNB"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"^\| olvf:C=0.1,B=0.5 \| \.\d+", shown.out, re.M)
    assert re.search(r"^\| river.naive_bayes:GaussianNB \| \.\d+", shown.out, re.M)
    with (own / "mine.csv").open("a") as file:
        file.write("0.1,a,0\n")
    assert main([*command, "--models", "olvf:C=0.1,B=0.5"]) == 0
    assert "2 cells run" in capsys.readouterr().err, "a changed file is another data set"


def test_a_learner_that_fails_does_not_stop_the_others(own, capsys):
    command = ["bench", "run", "--data", "synthetic", "--models", "bench_learners:Broken,olvf", "--repeats", "1"]
    assert main(command) == 1
    shown = capsys.readouterr()
    assert "failed (1): bench_learners:Broken on synthetic, none: ZeroDivisionError: it broke" in shown.err
    assert "1 numbers" not in shown.out
    assert "1 number: ZeroDivisionError: it broke" in shown.out
    with Store("varifold-bench.sqlite") as store:
        assert len(store.outcomes(None)) == 1
        assert len(store.failures()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "needs TABLE names"),
        (["run", "olvf-2", "--data", "synthetic"], "needs TABLE names"),
        (["run", "olvf-9"], "there is no table 'olvf-9'; did you mean olvf-"),
        (["run", "olvf-2", "--only", "germany"], "did you mean german"),
        (["run", "--data", "synthetic"], "--data needs --models"),
        (["run", "--data", "nothing.csv", "--target", "y", "--models", "olvf"], "there is no file 'nothing.csv'"),
        (["run", "--data", "synthetic", "--models", "olfv"], "there is no model 'olfv'; did you mean olvf"),
        (["run", "--data", "synthetic", "--models", "olvf,olvf"], "must be different"),
        (["run", "--data", "synthetic", "--models", "olvf", "--scenario", "vsf:1"], "no scenario 'vsf'"),
        (["run", "olvf-2", "--repeats", "0"], "must be a whole number >= 1"),
        (["report", "--html", "no/such/folder.html"], "the folder of no/such/folder.html does not exist"),
    ],
)
def test_wrong_usage_is_said_in_one_line(own, capsys, arguments, said):
    assert main(["bench", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_report_without_a_store(own, capsys):
    assert main(["bench", "report"]) == 1
    assert "there is no store" in capsys.readouterr().err


def test_split_models():
    assert split_models("auto,olvf:C=0.1,B=0.5,my.pkg:Mine") == ["auto", "olvf:C=0.1,B=0.5", "my.pkg:Mine"]
    assert split_models("ovfiv:base=(olvf:C=1,B=0.5),lam=1, pa") == ["ovfiv:base=(olvf:C=1,B=0.5),lam=1", "pa"]


@pytest.mark.slow
def test_several_processes_give_the_same_numbers(tmp_path):
    table = study_table("", define("synthetic", None, "olvf,arow", "vfs:0.5", 3))
    found = []
    for jobs in (1, 2):
        with Store(tmp_path / f"{jobs}.sqlite") as store:
            summary = run([table], store, jobs=jobs)
            assert (summary.ran, summary.already, summary.failures) == (6, 0, {})
            found.append({c: (o.cer, o.curve, o.stream_sha) for c, o in store.outcomes(None).items()})
    assert found[0] == found[1]


def test_the_same_stream_for_every_learner(tmp_path):
    table = study_table("", define("synthetic", None, "olvf,arow", "vfs:0.5", 2))
    with Store(tmp_path / "s.sqlite") as store:
        run([table], store)
        streams = {(c.model, c.seed): o.stream_sha for c, o in store.outcomes(None).items()}
    assert streams["olvf", 0] == streams["arow", 0]
    assert streams["olvf", 1] == streams["arow", 1]
    assert streams["olvf", 0] != streams["olvf", 1]


class Rounds(ThreadingBackend):
    """A backend that was registered with joblib and hands back whole rounds only, as Ray's does."""

    supports_return_generator = False


def test_any_registered_backend(tmp_path, capsys):
    register_parallel_backend("rounds", Rounds)
    common = ["--data", "synthetic", "--models", "arow", "--scenario", "vfs:0.5", "--repeats", "20"]
    seen = []
    for backend in (["--jobs", "1"], ["--jobs", "2", "--backend", "rounds"], ["--jobs", "2", "--backend", "threading"]):
        path = tmp_path / f"{len(seen)}.sqlite"
        assert main(["bench", "run", *common, *backend, "--store", str(path)]) == 0
        with Store(path) as store:
            seen.append({cell: outcome.cer for cell, outcome in store.outcomes(None).items()})
    assert len(seen[0]) == 20
    assert seen[0] == seen[1] == seen[2]
    capsys.readouterr()
    assert main(["bench", "run", *common, "--backend", "rund", "--store", str(tmp_path / "n.sqlite")]) == 2
    assert "--backend rund" in capsys.readouterr().err
