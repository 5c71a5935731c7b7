"""``varifold run`` on data sets: what it prints, writes and computes."""

import argparse
import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import varifold
from varifold import datasets
from varifold.cli import main, progress
from varifold.cli.source import add_reading_options
from varifold.evaluate import METRICS, repeat
from varifold.streams import Batch, Stream


def run_json(capsys, *argv):
    model = [] if "--model" in argv else ["--model", "olvf"]
    assert main(["run", *argv, *model, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_every_key_and_the_numbers_of_the_library(capsys):
    found = run_json(capsys, "--data", "synthetic", "--model", "olvf:C=0.05", "--scenario", "vfs:0.5", "--repeats", "3")
    expected = repeat(lambda: varifold.OLVF(C=0.05), datasets.load("synthetic"), scenario="vfs:0.5", repeats=3, seed=0)
    for metric in ("cer", "accuracy", "f1"):
        assert found[metric] == {"mean": expected.mean(metric), "std": expected.std(metric)}
    assert found["majority_cer"] == expected.mean("majority_cer")
    assert (found["model"], found["data"], found["scenario"]) == ("olvf", "synthetic", "vfs:0.5")
    assert (found["instances"], found["repeats"], found["seed"], found["classes"]) == (2000, 3, 0, 2)
    assert (found["features"], found["names"], found["scored_from"]) == (18, expected.results[0].names, 0)
    assert found["params"]["C"] == 0.05
    assert found["params"]["coverages"] == []
    assert found["empty"] == expected.mean("empty")
    assert found["us_per_instance"] > 0
    assert {"varifold", "python", "numpy", "scipy", "river"} <= set(found["versions"])


def test_seed_shuffle_and_jobs(capsys):
    first = run_json(capsys, "--data", "synthetic", "--repeats", "2", "--seed", "5")
    again = run_json(capsys, "--data", "synthetic", "--repeats", "2", "--seed", "5", "--jobs", "2")
    assert first["cer"] == again["cer"]
    assert main(["run", "--data", "synthetic", "--model", "olvf", "--repeats", "2", "--no-shuffle"]) == 0
    assert "same rows in the same order" in capsys.readouterr().err
    assert main(["run", "--data", "synthetic", "--model", "olvf", "--repeats", "2"]) == 0
    assert capsys.readouterr().err == ""


def test_csv_has_a_line_a_repeat(capsys):
    assert main(["run", "--data", "synthetic", "--model", "arow", "--repeats", "3", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["seed"] for row in rows] == ["0", "1", "2"]
    assert set(METRICS) <= set(rows[0])


def test_table_shows_the_metrics(capsys):
    assert main(["run", "--data", "synthetic", "--scenario", "vfs:0.9", "--repeats", "2"]) == 0
    out = capsys.readouterr().out
    for word in ("cer", "f1 of", "majority class", "us per instance", "without any feature", "2 repeats"):
        assert word in out


def test_scale(capsys):
    for scale in ("minmax", "none"):
        assert run_json(capsys, "--data", "synthetic", "--scale", scale)["params"]["scale"] == scale
    paper = run_json(capsys, "--data", "synthetic", "--scale", "paper")
    assert (paper["scale"], paper["params"]["scale"], paper["params"]["fit_intercept"]) == ("paper", "none", False)
    expected = repeat(
        lambda: varifold.OLVF(scale="none", fit_intercept=False),
        datasets.load("synthetic"),
        repeats=1,
        scale="paper",
    )
    assert paper["cer"]["mean"] == expected.cer


def test_default_model(capsys):
    assert main(["run", "--data", "synthetic", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == ("auto" if "auto" in varifold.models else "olvf")


def test_delay(capsys):
    late = run_json(capsys, "--data", "synthetic", "--model", "olvf", "--delay", "300")
    assert late["delay"] == 300
    assert late["cer"]["mean"] > run_json(capsys, "--data", "synthetic", "--model", "olvf")["cer"]["mean"]
    by_scenario = run_json(capsys, "--data", "synthetic", "--model", "olvf", "--scenario", "delay:300")
    assert by_scenario["cer"] == late["cer"]


def test_saved_learner_is_the_first_repeat_and_can_be_inspected(capsys, tmp_path):
    path = tmp_path / "model.vf"
    base = ["run", "--data", "synthetic", "--model", "olvf"]
    assert main([*base, "--repeats", "2", "--save", str(path)]) == 0
    capsys.readouterr()
    learner = varifold.load(path)
    expected = repeat(varifold.OLVF, datasets.load("synthetic"), repeats=1).learner
    assert learner.features == expected.features
    assert main(["inspect", str(path), "--top", "5"]) == 0
    out = capsys.readouterr().out
    assert "olvf" in out
    assert "2,000" in out
    assert "and 13 lighter ones" in out
    assert main(["inspect", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["steps"], found["known"]) == ("olvf", 2000, 18)
    weights = [f["weight"] for f in found["features"]]
    assert weights == sorted(weights, reverse=True)
    assert {f["name"]: f["weight"] for f in found["features"]} == {n: f.weight for n, f in expected.features.items()}


def test_third_party_and_river_classes(capsys, tmp_path, monkeypatch):
    (tmp_path / "mine_for_test.py").write_text(
        "from varifold import OLVF\n\nclass Mine(OLVF):\n    '''Mine.'''\n\n"
        "    def __init__(self, C=0.5):\n        super().__init__(C=C)\n"
    )
    monkeypatch.chdir(tmp_path)
    found = run_json(capsys, "--data", "synthetic", "--model", "mine_for_test:Mine:C=0.25")
    assert found["params"]["C"] == 0.25
    assert found["cer"] == run_json(capsys, "--data", "synthetic", "--model", "olvf:C=0.25")["cer"]
    river = run_json(capsys, "--data", "synthetic", "--model", "river.naive_bayes:GaussianNB")
    assert river["cer"]["mean"] < river["majority_cer"]


def test_plot_is_a_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.png"
    argv = ["run", "--data", "synthetic", "--scenario", "trapezoidal", "--repeats", "2", "--plot", str(path)]
    assert main(argv) == 0
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert main([*argv[:-1], str(tmp_path / "curve.xyz")]) == 2


def test_the_picture_has_the_figures_of_the_table(capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn = []
    monkeypatch.setattr("varifold.report.curves.write", lambda figure, path: drawn.append(figure))
    path = tmp_path / "few.csv"
    path.write_text("a,y\n1,p\n2,q\n3,p\n")
    assert main(["run", str(path), "--target", "y", "--model", "olvf", "--plot", str(tmp_path / "x.png")]) == 0
    shown = dict(line.rsplit(None, 1) for line in capsys.readouterr().out.splitlines()[4:])
    texts = {t.get_text() for ax in drawn[0].axes for t in ax.texts}
    assert f"majority class {float(shown['majority class cer']):.3f}" in texts
    assert f"so far (CER) {float(shown['cer']):.3f}" in texts
    ticks = drawn[0].axes[1].get_xticks()
    assert (ticks == np.round(ticks)).all()


def test_a_learner_within_is_spelled_as_a_model(capsys, tmp_path):
    varifold.OVFIV(base=varifold.PA()).save(tmp_path / "m")
    assert main(["inspect", str(tmp_path / "m")]) == 0
    assert "base=(pa:" in capsys.readouterr().out


def test_plot_without_matplotlib_names_the_extra(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert main(["run", "--data", "synthetic", "--plot", str(tmp_path / "x.png")]) == 1
    assert "pip install '.[plot]'" in capsys.readouterr().err


def test_progress_goes_to_standard_error(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    found = run_json(capsys, "--data", "synthetic", "--repeats", "2")
    assert found["repeats"] == 2
    with progress.progress("olvf on x", None, "instances") as report:
        report(12_000)
    assert capsys.readouterr().err == "olvf on x: 12,000 instances\n"


def test_progress_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress.progress("olvf on x", 3, "repeats") as report:
        report(1)
    assert "olvf on x" in terminal.getvalue()


@pytest.mark.real_data
def test_figures_on_the_original_sets(capsys):
    base = ["--repeats", "10"]
    assert run_json(capsys, "--data", "german", "--model", "olvf", "--scenario", "vfs:0.5", *base)["cer"]["mean"] < 0.30
    assert run_json(capsys, "--data", "german", "--model", "arow", "--scenario", "vfs:0.5", *base)["cer"]["mean"] < 0.30
    spam = run_json(capsys, "--data", "spambase", "--model", "olvf", "--scenario", "vfs:0.25", *base)
    assert spam["cer"]["mean"] < 0.125


def test_a_reader_s_stream_is_learned_as_it_comes(capsys, monkeypatch):
    block = datasets.load("synthetic").block
    options_of_read = {}

    class Stub(Stream):
        skipped, problems, target_type = 4, ["a.csv, line 3"] * 4, "class"
        width = 18

        def batches(self):
            return (Batch(block[lo : lo + 300]) for lo in range(0, 2000, 300))

    def read(paths, **options):
        options_of_read.update(paths=paths, **options)
        return Stub()

    monkeypatch.setattr("varifold.streams.read", read, raising=False)
    argv = ["a.csv", "b.csv", "--target", "y", "--types", "zip=category", "--on-error", "skip", "--model", "olvf"]
    found = run_json(capsys, *argv)
    assert options_of_read == {
        "paths": ["a.csv", "b.csv"],
        "target": "y",
        "types": {"zip": "category"},
        "on_error": "skip",
        "unlabelled": "keep",
        "key": None,
        "block_rows": 16_384,
    }
    assert (found["data"], found["skipped"], found["features"]) == ("a.csv b.csv", 4, 18)
    expected = varifold.evaluate.prequential(varifold.OLVF(), block)
    assert found["cer"]["mean"] == expected.cer
    varied = run_json(capsys, *argv, "--scenario", "vfs:0.5", "--repeats", "2")
    assert varied["cer"]["std"] > 0
    assert np.isclose(run_json(capsys, *argv, "--repeats", "2")["cer"]["mean"], expected.cer)


def test_costs_are_compared_with_the_cheapest_constant(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{i % 5},{i % 4}\n" for i in range(400)))
    given = [str(path), "--target", "y", "--target-type", "class", "--model", "olvf", "--costs", "3=7"]
    facts = run_json(capsys, *given)
    missed = [sum(row) - row[i + 1] for i, row in enumerate(facts["confusion"])]
    costs = [7.0 if label == 3 else 1.0 for label in facts["labels"]]
    assert facts["cost"]["mean"] == pytest.approx(sum(c * n for c, n in zip(costs, missed, strict=True)) / 400)
    assert facts["constant_cost"] == {"label": 3, "mean": 0.75}
    assert main(["run", *given]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["cost", "per", "row", f"{facts['cost']['mean']:.4f}"] for line in shown)
    assert any(line.split() == ["cost", "per", "row", "if", "always", "3", "0.7500"] for line in shown)
    assert main(["run", *given[:-2]]) == 0
    assert "cost" not in capsys.readouterr().out


def test_titles_have_no_folders(capsys, tmp_path, monkeypatch):
    from varifold.cli import run

    shown = []
    progress = run.progress
    monkeypatch.setattr(run, "progress", lambda title, *rest: (shown.append(title), progress(title, *rest))[1])
    names = [tmp_path / f"month {i}.csv" for i in range(4)]
    for name in names:
        name.write_text("x,y\n" + "".join(f"{i % 5},{i % 2}\n" for i in range(40)))
    for files, title in ((names[:2], "month 0.csv, month 1.csv"), (names, "month 0.csv and 3 more files")):
        assert main(["run", *map(str, files), "--target", "y", "--model", "olvf"]) == 0
        assert capsys.readouterr().out.startswith(f"olvf on {title}: ")
        assert shown.pop() == f"olvf on {title}"


def test_costs_and_objective(capsys, tmp_path):
    path = tmp_path / "s.csv"
    rng = np.random.default_rng(0)
    rows = [(rng.normal(y), y) for y in (rng.random(600) < 0.1).astype(int)]
    path.write_text("a,label\n" + "".join(f"{a},{y}\n" for a, y in rows))
    saved = tmp_path / "m.safetensors"
    model = ("--target", "label", "--model", "gaussiannb")
    plain = run_json(capsys, str(path), *model)
    costly = run_json(capsys, str(path), *model, "--costs", "1=9,0=1", "--save", str(saved))
    balanced = run_json(capsys, str(path), *model, "--objective", "balanced")
    for found in (costly, balanced):
        assert found["balanced_accuracy"]["mean"] > plain["balanced_accuracy"]["mean"] + 0.05
        assert found["log_loss"] == plain["log_loss"]
    assert varifold.load(saved).costs == {1: 9.0, 0: 1.0}
    assert main(["inspect", str(saved)]) == 0
    assert "costs=(1=9.0,0=1.0)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--costs", "1"], "write LABEL=COST"),
        (["--costs", "a=b"], "write LABEL=COST"),
        (["--costs", "1=2,1=3"], "given twice"),
        (["--costs", ","], "no LABEL=COST"),
        (["--costs", "1=0"], "'costs' parameter of OLVF"),
        (["--costs", "fault=2"], "'fault' is not in the stream"),
        (["--costs", "1=2", "--objective", "balanced"], "'objective' and 'costs'"),
        (["--model", "river.tree:HoeffdingTreeClassifier", "--costs", "1=2"], "has no parameter 'costs'"),
    ],
)
def test_costs_that_cannot_be_are_rejected(capsys, options, message):
    model = [] if "--model" in options else ["--model", "olvf"]
    assert main(["run", "--data", "synthetic", *model, *options]) == 2
    assert message in capsys.readouterr().err


def test_what_was_learned_before_a_row_that_cannot_be_read_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, model = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "model"
    good.write_text("x,y\n" + "".join(f"{i % 7},{'pq'[i % 7 > 3]}\n" for i in range(90)))
    bad.write_text("x,y\n1,p\n1,p,7\n")
    assert main(["run", str(good), str(bad), "--target", "y", "--model", "arow", "--save", str(model)]) == 1
    out, err = capsys.readouterr()
    assert "instances" in out
    assert "stopped after 91 instances" in err
    assert "b.csv, line 3" in err
    assert varifold.load(model).features["x"].count == 91


def test_a_missing_file_is_found_before_the_first_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, model = tmp_path / "a.csv", tmp_path / "model"
    good.write_text("x,y\n1,p\n2,q\n")
    words = ["run", str(good), str(tmp_path / "gone.csv"), "--target", "y", "--model", "arow", "--save", str(model)]
    assert main(words) == 1
    assert "gone.csv cannot be opened: No such file" in capsys.readouterr().err
    assert not model.exists()


def test_a_model_goes_on_under_other_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, model = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "model"
    old.write_text("temp,y\n" + "".join(f"{i % 7},{'pq'[i % 7 > 3]}\n" for i in range(90)))
    new.write_text(old.read_text().replace("temp", "temp_v2"))
    assert main(["run", str(old), "--target", "y", "--model", "arow", "--save", str(model)]) == 0
    capsys.readouterr()
    go_on = ["run", str(new), "--load", str(model), "--save", str(model), "--format", "json"]
    assert main([*go_on, "--rename", "temp=temp_v2"]) == 0
    assert set(varifold.load(model).features) == {"temp_v2"}
    assert varifold.load(model).features["temp_v2"].count == 180
    capsys.readouterr()
    assert main(["run", str(new), "--target", "y", "--rename", "a=b"]) == 2
    assert "--load MODEL" in capsys.readouterr().err


def test_an_option_with_one_value_is_rejected_the_second_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--data", "synthetic", "--data", "wbc"]) == 2
    assert "given twice: synthetic and wbc" in capsys.readouterr().err


def test_parts_of_one_date_are_joined_over_all_times_that_the_option_is_given() -> None:
    parser = argparse.ArgumentParser()
    add_reading_options(parser)
    given = [
        "--dates",
        "a=hour,b=day,a=weekday",
        "--dates",
        "a=month+hour",
        "--types",
        "c=text",
        "--types",
        "d=numeric",
    ]
    args = parser.parse_args(given)
    assert args.dates == {"a": ["hour", "weekday", "month"], "b": ["day"]}
    assert args.types == {"c": "text", "d": "numeric"}
