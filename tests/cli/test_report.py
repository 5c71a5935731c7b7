"""``varifold report`` and ``run --html``: a self-contained page about one model."""

import json
import re

import numpy as np
import pytest

import varifold
from varifold.cli import main

SECTIONS = ["How well, over time", "What matters", "What changed", "What it is unsure of", "How it was made"]


@pytest.fixture
def rows(tmp_path):
    """A stream in which a decides; b is noise, and c vanishes half way."""
    rng = np.random.default_rng(3)
    path = tmp_path / "plant <1>.csv"
    lines = ["a,b,c,state"]
    for i in range(900):
        a, b, c = rng.normal(size=3)
        lines.append(f"{a:.3f},{b:.3f},{f'{c:.3f}' if i < 450 else ''},{'fault' if a + 0.2 * c > 0.5 else 'fine'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def text(page):
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]+>", " ", page.read_text(encoding="utf-8")))


def test_a_run_and_its_model_have_the_same_page(capsys, tmp_path, rows):
    model, run_page, model_page = (tmp_path / name for name in ("p.model", "run.html", "model.html"))
    argv = ["run", str(rows), "--target", "state", "--model", "auto:budget=fast", "--save", str(model)]
    assert main([*argv, "--html", str(run_page)]) == 0
    assert main(["report", str(model), "--html", str(model_page)]) == 0
    assert capsys.readouterr().err.count("page written to") == 2
    shown = text(run_page)
    assert text(model_page).replace("p.model", "plant &lt;1&gt;.csv") == shown
    assert all(title in shown for title in SECTIONS)
    assert "Predicting state" in shown
    assert "plant &lt;1&gt;.csv: 900 rows" in shown
    assert "After 450 rows: c vanished." in shown
    assert "fault was predicted as fine" in shown
    assert str(tmp_path) not in run_page.read_text()


def test_a_run_with_costs_shows_them(capsys, tmp_path, rows):
    model, page = tmp_path / "p.model", tmp_path / "page.html"
    argv = ["run", str(rows), "--target", "state", "--model", "auto:budget=fast", "--costs", "fault=5"]
    assert main([*argv, "--save", str(model), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["report", str(model), "--html", str(page)]) == 0
    cost, constant = found["cost"]["mean"], found["constant_cost"]["mean"]
    assert cost < constant
    assert f"{cost:.4g} cost per row" in text(page)
    assert f"{constant:.4g} if {found['constant_cost']['label']} were always predicted" in text(page)


def test_one_row_is_singular(tmp_path):
    data, page = tmp_path / "a.csv", tmp_path / "page.html"
    data.write_text("a,y\n1,up\n2,up\n3,down\n")
    assert main(["run", str(data), "--target", "y", "--model", "olvf", "--html", str(page)]) == 0
    assert "down: 1 row, " in text(page)
    assert "predicted as up 1 time " in text(page)


def test_columns_come_and_go_but_a_month_that_is_over_does_not_vanish(capsys, tmp_path):
    """A manager reads which columns appeared and vanished; the values of a column of strings are no columns."""
    rng = np.random.default_rng(1)
    path, page, model = (tmp_path / name for name in ("a.jsonl", "page.html", "a.model"))
    rows = []
    for i in range(900):
        x = {"a": rng.normal(), "month": ("Jan", "Feb", "Mar")[i // 300]}
        x |= {"old": rng.normal(), "kind": "u"} if i < 400 else {"new": rng.normal()}
        rows.append(json.dumps({**x, "y": "up" if x["a"] > 0 else "down"}))
    path.write_text("\n".join(rows))
    argv = ["run", str(path), "--target", "y", "--model", "auto:budget=fast", "--save", str(model)]
    assert main([*argv, "--html", str(page)]) == 0
    shown = text(page)
    assert "After 400 rows: kind vanished, new appeared, old vanished. " in shown
    assert "month=" not in shown.partition("What changed")[2]
    assert main(["report", str(model), "--html", str(page)]) == 0
    learner = varifold.load(model)
    assert {change.feature for change in learner.report().changes if change.what == "vanished"} == {"old", "kind"}
    assert learner.features["month=Jan"].column == "month"
    assert learner.features["a"].column is None
    unlearned = [{"a": 0.1, "month": "Apr", "kind": "w"}] * 400
    gone = {c.feature for c in learner.report(predicted=unlearned).changes if c.what == "vanished"}
    assert gone == {"old", "new"}


def test_commands_on_the_page_are_code(tmp_path):
    model, page = tmp_path / "m.model", tmp_path / "page.html"
    learner = varifold.OLVF()
    learner.learn_many([{"a": 1.0}, {"a": -1.0}] * 30, ["x", "y"] * 30)
    learner.save(model)
    assert main(["report", str(model), "--html", str(page)]) == 0
    assert "<code>varifold run --save</code>" in page.read_text()
    assert "`" not in page.read_text()


def test_the_page_needs_no_network_and_no_script(tmp_path, rows):
    page = tmp_path / "page.html"
    assert main(["run", str(rows), "--target", "state", "--model", "olvf", "--html", str(page)]) == 0
    written = page.read_text(encoding="utf-8")
    assert "<script" not in written
    assert not re.search(r"(src|href)=|url\(|https?:", written)
    assert "@media print" in written
    assert "section,figure" not in written  # a section goes on on the next page, instead of leaving half a page empty


def test_only_columns_that_matter_are_drawn(capsys, tmp_path, rows):
    page = tmp_path / "page.html"
    assert main(["run", str(rows), "--target", "state", "--model", "auto:budget=fast", "--html", str(page)]) == 0
    bars = re.search(r'aria-label="bars">(.*?)</svg>', page.read_text()).group(1)
    assert ">a</text>" in bars
    assert ">b</text>" not in bars
    assert "No clear loss without: " in text(page)


def test_a_model_without_a_record_is_reported(tmp_path):
    model, page = tmp_path / "m.model", tmp_path / "page.html"
    learner = varifold.OLVF()
    learner.learn_many([{"a": 1.0}, {"a": -1.0}] * 30, ["x", "y"] * 30)
    learner.save(model)
    assert main(["report", str(model), "--html", str(page)]) == 0
    assert "The file holds no record of how well" in text(page)
    assert "was not measured" in text(page)


def test_regression(capsys, tmp_path):
    path, page = tmp_path / "a.csv", tmp_path / "page.html"
    path.write_text("x,y\n" + "".join(f"{i % 40},{3.5 * (i % 40) + 0.25}\n" for i in range(400)))
    assert main(["run", str(path), "--target", "y", "--target-type", "number", "--html", str(page)]) == 0
    shown = text(page)
    assert "mean absolute error" in shown
    assert "contained the truth in" in shown
    assert "range of the target" in shown


def test_a_damaged_record_is_an_error_of_the_library(capsys, tmp_path, rows):
    model = tmp_path / "p.model"
    learner = varifold.OLVF()
    learner.learn_many([{"a": 1.0}, {"a": -1.0}] * 30, ["x", "y"] * 30)
    learner.reading = {"run": {"task": "classification", "data": 3}}
    learner.save(model)
    assert main(["report", str(model), "--html", str(tmp_path / "page.html")]) == 1
    assert "the record of a run in p.model cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [(["--jobs", "2"], "--html is for --jobs 1"), (["--key", "a"], "--html is about one learner")],
)
def test_rejected(capsys, tmp_path, rows, more, message):
    argv = ["run", str(rows), "--target", "state", "--html", str(tmp_path / "page.html")]
    assert main([*argv, *more]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_inspect_shows_measured_importances_and_orders_by_presence(capsys, tmp_path):
    rng = np.random.default_rng(0)
    path, model = tmp_path / "a.csv", tmp_path / "m.model"
    lines = ["signal,rare,y"]
    for i in range(800):
        signal = rng.normal()
        lines.append(f"{signal:.3f},{'level' + str(i) if i % 40 == 0 else 'usual'},{signal > 0.2}")
    path.write_text("\n".join(lines) + "\n")
    argv = ["run", str(path), "--target", "y", "--model", "auto:budget=fast", "--save", str(model)]
    assert main(argv) == 0
    capsys.readouterr()
    assert main(["inspect", str(model)]) == 0
    out = capsys.readouterr().out
    assert "`varifold run --importances --save` measures" in out
    assert "Largest average weights: signal" in out
    assert main([*argv, "--importances"]) == 0
    assert "present: share of the rows that have the column" in capsys.readouterr().out
    assert main(["inspect", str(model), "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["features"][0]["name"] == "signal"
    assert facts["features"][0]["present"] == 1.0
    by_column = {row["column"]: row for row in facts["importances"]}
    assert by_column["signal"]["loss"] > 2 * by_column["signal"]["error"]
    assert main(["inspect", str(model)]) == 0
    assert "no loss seen" in capsys.readouterr().out


def test_a_detector(capsys, tmp_path, rows):
    model, page = tmp_path / "d.model", tmp_path / "page.html"
    argv = ["detect", str(rows), "--target", "state", "--rate", "0.02", "--save", str(model), "--format", "json"]
    assert main(argv) == 0
    alarms = json.loads(capsys.readouterr().out)["alarms"]
    assert main(["report", str(model), "--html", str(page)]) == 0
    shown = text(page)
    assert "Finding unusual rows" in shown
    assert f"{alarms} alarms" in shown
    assert "0.02 is the requested rate of alarms" in shown
    assert "varifold run" not in shown
    assert "After 450 rows: c vanished." in shown
    assert main(["inspect", str(model)]) == 0
    shown = capsys.readouterr().out
    assert f"alarms      alarms={alarms}, instances=900, rate=0.02" in shown
    assert "varifold run" not in shown
    assert main(["inspect", str(model), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["alarms"] == {"alarms": alarms, "instances": 900, "rate": 0.02}
    detector = varifold.AutoDetector(rate=0.05)
    detector.learn_many([{"a": 1.0}, {"a": -1.0}] * 30)
    detector.save(model)
    assert main(["report", str(model), "--html", str(page)]) == 0
    assert "its rate of alarms is 0.05. The file holds no count of its alarms: varifold detect --save" in text(page)


def test_charts_fit_wide_screens_and_phones_and_show_the_time(tmp_path, rows):
    page, model = tmp_path / "page.html", tmp_path / "p.model"
    lines = rows.read_text().splitlines()
    start = 1_772_323_200
    timed = [f"{line},{start + 60 * i}" for i, line in enumerate(lines[1:])]
    rows.write_text("\n".join([f"{lines[0]},ts", *timed]))
    argv = ["run", str(rows), "--target", "state", "--time", "ts", "--model", "auto:budget=fast"]
    assert main([*argv, "--html", str(page), "--save", str(model)]) == 0
    for _ in range(2):  # the page of the run, and that of its model
        written = page.read_text()
        assert re.search(r'class="broad"><svg viewBox="0 0 760 .*class="narrow"><svg viewBox="0 0 334 ', written)
        assert "2026-03-01 00:00:00" in written
        assert "2026-03-01 14:59:00" in written
        assert "900 instances" not in written
        assert main(["report", str(model), "--html", str(page)]) == 0
    assert main([*argv, "--html", str(page), "--shuffle"]) == 0
    assert "900 instances" in page.read_text()


def test_run_and_page_count_the_same_columns(capsys, tmp_path):
    data, page = tmp_path / "a.csv", tmp_path / "page.html"
    words = "the box came late and broken", "all was well packed and quick"
    lines = [f"{1 + i % 28:02}.01.2026,{i % 7},{words[i % 2]} {i},{'ud'[i % 2]}" for i in range(60)]
    data.write_text("\n".join(["day,a,comment,y", *lines]))
    argv = ["run", str(data), "--target", "y", "--dates", "day=weekday+elapsed", "--model", "arow", "--html", str(page)]
    assert main([*argv, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 4
    assert "4 columns seen" in text(page)
