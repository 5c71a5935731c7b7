"""The command: lists, runs, resumes, reports; own data and own learners."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys

import pytest
from joblib import register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from varifold.bench import ResultStore, run
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


def flipping(path, n=2000, every=500):
    """A file whose labels change their meaning again and again, in the order of its rows."""
    draw = random.Random(1)
    lines = []
    for i in range(n):
        value = draw.gauss(0, 1)
        lines.append(f"{i},{value:.3f},{int((value > 0) != (i // every % 2 == 1))}")
    path.write_text("row,a,y\n" + "\n".join(lines) + "\n")


def shown_cer(out, learner):
    line = next(line for line in out.splitlines() if line.startswith(f"| {learner} |"))
    return float(re.search(r"\.\d+", line)[0])


def test_files_keep_their_order(own, capsys):
    flipping(own / "flip.csv")
    command = ["bench", "run", "--data", "flip.csv", "--target", "y", "--ignore", "row", "--models", "olvf,pa"]
    assert main([*command, "--repeats", "3"]) == 0
    shown = capsys.readouterr()
    assert "one repeat: rows keep their order" in shown.err
    assert "2 cells run" in shown.err
    assert main(["run", "flip.csv", "--target", "y", "--ignore", "row", "--model", "olvf", "--format", "json"]) == 0
    cer = json.loads(capsys.readouterr().out)["cer"]["mean"]
    assert shown_cer(shown.out, "olvf") == round(cer, 3) < 0.3
    assert main([*command, "--shuffle", "--repeats", "2"]) == 0
    assert shown_cer(capsys.readouterr().out, "olvf") > 0.4, "permuted, nothing is left to learn"


def test_several_files_in_their_order_with_the_options_of_run(own, capsys):
    flipping(own / "all.csv")
    lines = (own / "all.csv").read_text().splitlines()
    (own / "first.csv").write_text("\n".join(lines[:801]) + "\n")
    (own / "second.csv").write_text("\n".join([lines[0], *lines[801:]]) + "\n")
    options = ["--target", "y", "--id", "row", "--types", "a=numeric", "--max-line", "5000", "--models", "olvf,arow"]
    assert main(["bench", "run", "--data", "all.csv", *options]) == 0
    whole = capsys.readouterr().out.splitlines()[4:6]
    assert main(["bench", "run", "--data", "first.csv", "second.csv", *options]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].startswith("first.csv second.csv: 2 learners on the same stream")
    cut = [line.rpartition("|")[0].rpartition("|")[0] for line in (*whole, *shown.out.splitlines()[4:6])]
    assert cut[:2] == cut[2:], "times apart"
    assert main(["bench", "report", "--markdown", "r.md"]) == 0
    recipe = next(x for x in (own / "r.md").read_text().splitlines() if "second.csv" in x and x.startswith("varifold"))
    assert main([*shlex.split(recipe)[1:]]) == 0
    assert "2 were done" in capsys.readouterr().err, "the recipe names the same cells"


def test_curves_of_several_learners_in_one_picture(own, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn = []
    monkeypatch.setattr("varifold.report.comparison.write", lambda figure, path: drawn.append(figure))
    flipping(own / "flip.csv")
    command = ["bench", "run", "--data", "flip.csv", "--target", "y", "--ignore", "row", "--models", "olvf,nb3"]
    assert main([*command, "--plot", "curves.png"]) == 0
    titles = [ax.get_ylabel() for ax in drawn[0].axes]
    assert titles == ["error, last 102", "error so far", "log loss so far"]
    cer = shown_cer(capsys.readouterr().out, "olvf")
    assert f"olvf {cer:.3f}" in {t.get_text() for t in drawn[0].axes[1].texts}
    line = drawn[0].axes[0].lines[0]
    after_flip = [y for x, y in zip(*line.get_data(), strict=True) if 1000 < x < 1150]
    before_flip = [y for x, y in zip(*line.get_data(), strict=True) if 900 < x < 1000]
    assert max(after_flip) > max(before_flip), "the picture is in the order of the rows"
    assert main([*command, "--plot", "curves.xyz"]) == 2


def test_a_changed_learner_is_run_again(own, capsys):
    command = [sys.executable, "-m", "varifold", "bench", "run", "--data", "synthetic", "--repeats", "1"]
    command += ["--models", "bench_learners:Mine,olvf"]

    def ran():
        done = subprocess.run(command, cwd=own, capture_output=True, text=True, check=True)
        return re.search(r"(\d+) cells? run in .*, (\d+) were done", done.stderr).groups()

    assert ran() == ("2", "0")
    assert ran() == ("0", "2")
    (own / "bench_learners.py").write_text(LEARNER.replace("somebody else's", "mine"))
    assert ran() == ("1", "1")


@pytest.mark.real_data
def test_a_learner_next_to_those_of_a_table(own, capsys):
    command = ["bench", "run", "olvf-5", "--only", "wpbc", "--repeats", "1"]
    assert main([*command, "--models", "bench_learners:Mine"]) == 0
    shown = capsys.readouterr()
    first = shown.err.splitlines()[0]
    assert first == (
        "olvf-5 with bench_learners:Mine and its learners: 22 cells (22 specifications of learners), "
        "22 of them to be run"
    )
    header = next(line for line in shown.out.splitlines() if line.startswith("| data set |"))
    row = next(line for line in shown.out.splitlines() if line.startswith("| wpbc |"))
    columns = dict(zip(header.split("|"), row.split("|"), strict=True))
    assert columns[" bench_learners:Mine "].strip()[:4] == columns[" defaults "].strip()[:4], "as OLVF by default"
    assert main(["bench", "report", "olvf-5", "--models", "bench_learners:Mine", "--markdown", "r.md"]) == 0
    assert "| bench_learners:Mine |" in (own / "r.md").read_text()


@pytest.mark.real_data
def test_a_table_is_printed_at_the_end(own, capsys):
    assert main(["bench", "run", "olvf-2", "--only", "wpbc", "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("OLVF, Table 2: ")
    assert len(re.findall(r"^\| wpbc \| \.\d+", out, re.M)) == 3
    assert main(["bench", "run", "olvf-2", "--only", "wpbc", "--repeats", "1", "--markdown", "t.md"]) == 0
    assert capsys.readouterr().out == ""
    assert (own / "t.md").read_text().startswith("# OLVF, Table 2, run again")


@pytest.mark.real_data
def test_only_the_learner_next_to_those_of_the_tables(own, capsys):
    command = ["bench", "run", "olvf-2", "cwfe-3", "--only", "wpbc,german", "--method", "auto", "--repeats", "1"]
    assert main([*command, "--markdown", "r.md", "--html", "r.html"]) == 0
    assert "6 cells run" in capsys.readouterr().err
    head = next(line for line in (own / "r.md").read_text().splitlines() if line.startswith("| data set"))
    assert head == "| data set | auto | majority | best of ours |"


def test_a_learner_that_fails_does_not_stop_the_others(own, capsys):
    command = ["bench", "run", "--data", "synthetic", "--models", "bench_learners:Broken,olvf", "--repeats", "1"]
    assert main(command) == 1
    shown = capsys.readouterr()
    assert "failed (1): bench_learners:Broken on synthetic, none: ZeroDivisionError: it broke" in shown.err
    assert "1 numbers" not in shown.out
    assert "1 number: ZeroDivisionError: it broke" in shown.out
    with ResultStore("varifold-bench.sqlite") as store:
        assert len(store.outcomes(None)) == 1
        assert len(store.failures()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "needs TABLE names"),
        (["run", "olvf-2", "--data", "synthetic"], "needs TABLE names"),
        (["run", "olvf-9"], "there is no table 'olvf-9'; did you mean olvf-"),
        (["run", "olvf-2", "--only", "germany"], "did you mean german"),
        (["run", "--data", "synthetic"], "--data needs --models"),
        (["run", "--data", "nothing.csv", "--target", "y", "--models", "olvf"], "there is no file 'nothing.csv'"),
        (["run", "--data", "synthetic", "--models", "olfv"], "there is no model 'olfv'; did you mean olvf"),
        (["run", "--data", "synthetic", "--models", "olvf,olvf"], "must be different"),
        (["run", "--data", "synthetic", "--models", "olvf", "--scenario", "vsf:1"], "there is no scenario 'vsf'"),
        (["run", "olvf-2", "--target", "y"], "--target is for your own data"),
        (["run", "olvf-2", "--ignore", "y"], "--ignore is for files"),
        (["run", "olvf-2", "--models", "olfv"], "there is no model 'olfv'; did you mean olvf"),
        (["run", "--data", "synthetic", "--id", "a", "--models", "olvf"], "--id is for files"),
        (["run", "olvf-2", "--repeats", "0"], "must be a whole number >= 1"),
        (["report", "--html", "no/such/folder.html"], "the folder of no/such/folder.html does not exist"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(own, capsys, arguments, message):
    assert main(["bench", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_report_without_a_store(own, capsys):
    assert main(["bench", "report"]) == 1
    assert "there is no store" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("models", "columns"),
    [
        ("arow,olvf:coverages=(0.8,0.95)", ["coverage (0.8)", "labels in a set (0.8)"]),
        ("arowregressor,autoregressor", ["coverage (0.9)", "interval width (0.9)", "interval score (0.9)"]),
    ],
)
def test_coverages_of_learners_have_their_columns(own, capsys, models, columns):
    path = own / "numbers.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 5},{i % 2 + i % 7 / 2}\n" for i in range(300)))
    kind = ["--target-type", "class" if "olvf" in models else "number"]
    command = ["bench", "run", "--data", str(path), "--target", "y", *kind, "--models", models]
    for _ in range(2):  # run, then from the store
        assert main(command) == 0
        table = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        rows = {row[0]: dict(zip(table[0], row, strict=False)) for row in table[2:]}
        plain, with_coverages = (rows[name] for name in split_models(models))
        assert [plain[column] for column in columns] == ["–"] * len(columns)
        assert 0.7 < float(with_coverages[columns[0]]) < 1.0
        assert all(float(with_coverages[column]) > 0 for column in columns)


def test_split_models():
    assert split_models("auto,olvf:C=0.1,B=0.5,my.pkg:Mine") == ["auto", "olvf:C=0.1,B=0.5", "my.pkg:Mine"]
    assert split_models("ovfiv:base=(olvf:C=1,B=0.5),lam=1, pa") == ["ovfiv:base=(olvf:C=1,B=0.5),lam=1", "pa"]


@pytest.mark.slow
def test_several_processes_give_the_same_numbers(tmp_path):
    table = study_table("", define("synthetic", None, "olvf,arow", "vfs:0.5", 3))
    found = []
    for jobs in (1, 2):
        with ResultStore(tmp_path / f"{jobs}.sqlite") as store:
            summary = run([table], store, jobs=jobs)
            assert (summary.ran, summary.already, summary.failures) == (6, 0, {})
            found.append({c: (o.cer, o.curve, o.stream_sha) for c, o in store.outcomes(None).items()})
    assert found[0] == found[1]


def test_the_same_stream_for_every_learner(tmp_path):
    table = study_table("", define("synthetic", None, "olvf,arow", "vfs:0.5", 2))
    with ResultStore(tmp_path / "s.sqlite") as store:
        run([table], store)
        streams = {(c.model, c.seed): o.stream_sha for c, o in store.outcomes(None).items()}
    assert streams["olvf", 0] == streams["arow", 0]
    assert streams["olvf", 1] == streams["arow", 1]
    assert streams["olvf", 0] != streams["olvf", 1]


class Rounds(ThreadingBackend):
    """A backend that was registered with joblib and hands back whole rounds only, as Ray's does."""

    supports_return_generator = False


def test_any_registered_backend(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("varifold.ensemble.workers._ROUND", 1)  # three rounds
    register_parallel_backend("rounds", Rounds)
    common = ["--data", "synthetic", "--models", "arow", "--scenario", "vfs:0.5", "--repeats", "5"]
    seen = []
    for backend in (["--jobs", "1"], ["--jobs", "2", "--backend", "rounds"], ["--jobs", "2", "--backend", "threading"]):
        path = tmp_path / f"{len(seen)}.sqlite"
        assert main(["bench", "run", *common, *backend, "--store", str(path)]) == 0
        with ResultStore(path) as store:
            seen.append({cell: outcome.cer for cell, outcome in store.outcomes(None).items()})
    assert len(seen[0]) == 5
    assert seen[0] == seen[1] == seen[2]
    capsys.readouterr()
    assert main(["bench", "run", *common, "--backend", "rund", "--store", str(tmp_path / "n.sqlite")]) == 2
    assert "--backend rund" in capsys.readouterr().err
