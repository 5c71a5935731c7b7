import json

import pytest

import varifold
from varifold.cli import main
from varifold.report.auto import draw_report


@pytest.fixture
def model():
    pytest.importorskip("matplotlib")
    learner = varifold.AutoClassifier(budget="fast")
    for t in range(300):
        learner.learn_one({"a": t % 7, "b": t % 3, "c": "xyz"[t % 3]}, t % 7 > 3)
    return learner


def test_the_report_becomes_a_picture(model, tmp_path):
    target = tmp_path / "report.png"
    draw_report(model.report(), target)
    assert target.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_inspect_prints_the_report_and_draws_it(model, tmp_path, capsys):
    file, picture = str(tmp_path / "m.vf"), tmp_path / "report.png"
    model.save(file)
    assert main(["inspect", file, "--plot", str(picture)]) == 0
    assert str(model.report()) in capsys.readouterr().out
    assert picture.stat().st_size > 2000
    assert main(["inspect", file, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == str(model.report())


def test_small_weights_are_counted_and_notes_are_printed_once(model, tmp_path, capsys):
    report = model.report()
    small = sum(0 < weight < 0.005 for weight in report.experts.values())
    assert small > 1
    assert f"{small} others less than 1% each." in str(report)
    assert " 0%" not in str(report).partition("(Experts")[0]
    file = str(tmp_path / "m.vf")
    model.save(file)
    assert main(["inspect", file]) == 0
    out = capsys.readouterr().out
    assert all(out.count(note) == 1 for note in report.notes)
