"""``varifold run`` with ``--ask``, ``--key`` and ``--scenario`` on a file with a column of strings."""

import json
import random

import pytest

from varifold.cli import main


@pytest.fixture
def machines(tmp_path):
    """Readings of four machines; each is bad above a threshold of its own."""
    rng = random.Random(1)
    rows = [(i % 4, rng.random(), rng.random()) for i in range(600)]
    path = tmp_path / "machines.csv"
    lines = [f"M{m},{v:.3f},{w:.3f},{'bad' if (v > 0.5) == (m % 2 == 0) else 'ok'}" for m, v, w in rows]
    path.write_text("m,v,w,y\n" + "\n".join(lines) + "\n")
    return path


def run(capsys, path, *options):
    assert main(["run", str(path), "--target", "y", "--format", "json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_importances_of_strings_are_measured_with_ask(capsys, machines, tmp_path):
    found = run(capsys, machines, "--ask", "0.5", "--html", str(tmp_path / "run.html"), "--importances")
    assert {each["column"] for each in found["importances"]} == {"m", "v", "w"}


def test_all_labels_requested_give_the_run_without_ask(capsys, machines):
    requested, plain = (run(capsys, machines, "--model", "arow", *ask) for ask in (["--ask", "1:random"], []))
    assert requested["requested"]["labels"] == 600
    assert requested["log_loss"] == plain["log_loss"]


def test_one_learner_per_key_with_ask(capsys, machines):
    found = run(capsys, machines, "--key", "m", "--model", "arow", "--ask", "0.5")
    assert found["cer"]["mean"] < 0.25
    assert found["requested"]["labels"] < 450


def test_sets_are_scored_with_ask(capsys, machines):
    options = ["--coverage", "0.8", "--coverage", "0.95"]
    requested, plain = (run(capsys, machines, *options, *ask) for ask in (["--ask", "1:random"], []))
    assert [each["coverage"] for each in requested["sets"]] == [0.8, 0.95]
    assert requested["sets"] == plain["sets"]


def test_a_scenario_does_not_hide_the_key(capsys, machines):
    found = run(capsys, machines, "--key", "m", "--model", "arow", "--scenario", "vfs:0.5")
    assert found["instances"] == 600
    assert found["cer"]["mean"] < 0.4
