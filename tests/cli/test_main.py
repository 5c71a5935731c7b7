"""What the command says and returns when it is used wrongly, and when all is well."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import varifold
from varifold.cli import COMMANDS, main


def fails(capsys, *argv):
    code = main(list(argv))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("varifold: ")
    assert err.count("\n") == 1, err
    return code, err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["data"], "list|info|fetch|export|show"),
        (["explain", "x.model"], "--row name=value"),
        (["rnu"], "did you mean run"),
        (["run"], "--data NAME"),
        (["run", "--modle", "olvf"], "did you mean --model"),
        (["bench", "run", "--model", "auto"], "bench run does not know '--model'; did you mean --models"),
        (["bench", "report", "--htm", "a"], "bench report does not know '--htm'; did you mean --html"),
        (["data", "show", "synthetic", "--polt", "a"], "data show does not know '--polt'; did you mean --plot"),
        (["run", "a.csv", "--ignore", "b", "c"], "does not know 'c'; did you mean --ignore b,c?"),
        (["follow", "--target", "y", __file__], f"it reads standard input: varifold follow ... < {__file__}"),
        (["run", "a.csv"], "--target"),
        (["run", "a.csv", "--target", "y", "--data", "german"], "either"),
        (["run", "--data", "german", "--target", "y"], "for files"),
        (["run", "--data", "synthetc"], "synthetic"),
        (["run", "--data", "synthetic", "--model", "olfv"], "did you mean olvf"),
        (["run", "--data", "synthetic", "--model", "olvf:c_bar=1"], "did you mean C_bar"),
        (["run", "--data", "synthetic", "--model", "olvf:C=-1"], "must be a float > 0"),
        (["run", "--data", "synthetic", "--model", "olvf:C"], "key=value"),
        (["run", "--data", "synthetic", "--model", "olvf:C=1,C=2"], "'C' is given twice"),
        (["run", "--data", "synthetic", "--model", "OLVF"], "did you mean olvf"),
        (["run", "--data", "synthetic", "--model", "olvf:C=(1"], "left open"),
        (["run", "--data", "synthetic", "--model", "nowhere.at_all:Thing"], "nowhere"),
        (["run", "--data", "synthetic", "--model", "river.linear_model:LogisticRegresion"], "LogisticRegression"),
        (["run", "--data", "synthetic", "--model", "river.preprocessing:StandardScaler"], "learn_one"),
        (["run", "--data", "synthetic", "--model", "river.naive_bayes:GaussianNB", "--save", "x"], "save"),
        (["run", "--data", "synthetic", "--model", "river.naive_bayes:GaussianNB", "--scale", "none"], "scale"),
        (["run", "--data", "synthetic", "--scenario", "vsf:0.5"], "vfs"),
        (["run", "--data", "synthetic", "--scenario", "vfs:2"], "0 and 1"),
        (["run", "--data", "synthetic", "--repeats", "0"], ">= 1"),
        (["run", "--data", "synthetic", "--seed", "x"], ">= 0"),
        (["run", "--data", "synthetic", "--format", "xml"], "xml"),
        (["run", "--data", "synthetic", "--save", "no/such/folder/x"], "folder"),
        (["run", "--data", "synthetic", "--save", "."], "not a file"),
        (["run", "--data", "synthetic", "--plot", os.devnull], "not a file"),
        (["run", "--data", "synthetic", "--delay", "-1"], "delay is -1"),
        (["demo", "--plot", "no/such/folder/x.png"], "folder"),
        (["demo", "--plot", "x.foo"], "picture format"),
        (["data", "show", "synthetic", "--plot", "x.foo"], "picture format"),
        (["data", "export", "synthetic", "--output", "no/such/folder/x"], "folder"),
        (["run", "--data", "synthetic", "--positive", "9"], "positive"),
        (["run", "a.csv", "--target", "y", "--types", "a=number"], "numeric|category|text"),
        (["models", "olv"], "olvf"),
        (["inspect", "x", "--top", "-1"], "--top"),
        (["demo", "--seed", "-1"], "--seed"),
        (["data", "show", "synthetic", "--seed", "-1"], "--seed"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(capsys, argv, message):
    code, err = fails(capsys, *argv)
    assert message in err
    assert code == 2


def test_wrong_data_is_one_line_and_code_1(capsys, tmp_path):
    broken = tmp_path / "model"
    broken.write_bytes(b"nonsense")
    for argv, message in (
        (["inspect", str(tmp_path / "missing")], "No such file"),
        (["inspect", str(broken)], "not a varifold model file"),
        (["inspect", str(tmp_path)], "directory"),
    ):
        code = main(argv)
        err = capsys.readouterr().err
        assert (code, err.count("\n")) == (1, 1), err
        assert message in err


def test_a_bug_is_still_one_line(tmp_path):
    (tmp_path / "odd.py").write_text(
        "class Odd:\n"
        "    def learn_one(self, x, y): raise RuntimeError('two\\nlines')\n"
        "    def predict_one(self, x): ...\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(varifold.__file__).parents[1])}
    command = [sys.executable, "-m", "varifold", "run", "--data", "synthetic", "--model", "odd:Odd"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "varifold: unexpected RuntimeError: two lines (VARIFOLD_TRACEBACK=1 shows where)\n"


def test_a_warning_is_one_line(tmp_path):
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,x\n3,4,z\n")
    env = {**os.environ, "PYTHONPATH": str(Path(varifold.__file__).parents[1])}
    command = [sys.executable, "-m", "varifold", "run", "twice.csv", "--target", "y", "--model", "olvf"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("varifold: twice.csv: ")
    assert done.stderr.count("\n") == 1


def test_a_warning_is_printed_once_although_a_file_is_read_several_times(tmp_path):
    rows = "".join(f'{i};"{i % 9 + 1}.{100 + i},{i % 90 + 10}"\n' for i in range(300))
    (tmp_path / "area.csv").write_text(f"a;y\n{rows}")
    env = {**os.environ, "PYTHONPATH": str(Path(varifold.__file__).parents[1])}
    words = "bench run --data area.csv --target y --models arow,olvf --repeats 2 --shuffle"
    command = [sys.executable, "-m", "varifold", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("between thousands: 1.100,10 is 1100.1; if that is wrong") == 1


def test_messages_name_the_remedy(capsys, tmp_path):
    data, document = tmp_path / "a.csv", tmp_path / "a.json"
    data.write_text("Preis,y\n1,u\n2,v\n3,u\n")
    document.write_text('{\n  "Preis": 1\n}\n')
    model = str(tmp_path / "a.model")
    assert main(["run", str(data), "--target", "y", "--model", "olvf", "--save", model]) == 0
    for argv, message in (
        (["run", str(document), "--target", "y"], "a.json has JSON objects over several lines; write an object a line"),
        (
            ["run", str(data), "--target", "y", "--model", "nomod:Foo"],
            r"no module named 'nomod' for the model 'nomod:Foo' \(",
        ),
        (["run", str(data), "--target", "y", "--load", model, "--rename", "preis=Preis"], "--rename Preis=preis"),
        (["backup", str(data), str(tmp_path / "x.db")], "a.csv is a file; name the folder of varifold serve"),
        (["serve", "--dir", str(data), "--port", "0"], "a.csv is no folder: it, or a part of its path, is a file"),
    ):
        assert main(argv) in (1, 2)
        assert re.search(message, capsys.readouterr().err)


def test_help_and_version(capsys):
    for argv in (["--help"], ["--version"], *[[name, "--help"] for name in COMMANDS]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 0
        assert capsys.readouterr().out


def test_models_lists_every_registered_learner(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert main(["models", "--format", "json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [e["name"] for e in entries] == [*varifold.models, *varifold.detectors]
    for entry in entries:
        assert entry["summary"]
        assert entry["summary"] in out
    assert main(["models", "olvf"]) == 0
    assert "C_bar" in capsys.readouterr().out


def test_a_run_imports_nothing_that_it_does_not_need(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,y\n" + "1,0\n2,1\n" * 20)
    code = f"""
import sys
from varifold.cli import main
main(["run", {str(rows)!r}, "--target", "y", "--model", "olvf"])
others = ["varifold." + name for name in ("auto", "copula", "forest", "bench", "cli.serve")] + ["scipy", "numpy.ma"]
print([name for name in others if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_alone_shows_its_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)
