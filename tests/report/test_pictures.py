"""What pictures show: titles that fit, columns instead of values, one colour per expert, values that are explained."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varifold
from varifold.bench.study import define, study_table
from varifold.cli import main
from varifold.evaluate import Summary, prequential
from varifold.report import auto, copula, curves, explanation, forest, style

FILES = " ".join(f"readings_of_the_plant_{month:02}.csv" for month in range(1, 13))


def rows(n: int = 400) -> list[tuple[dict[str, Any], str]]:
    rng = random.Random(4)
    made = []
    for _ in range(n):
        load = rng.gauss(0, 1)
        x = {"load": load, "city": f"c{rng.randrange(50)}", "x10": rng.random(), "x2": rng.random()}
        made.append((x, "fault" if load > 0.3 else "ok"))
    return made


class Canvas:
    """Keeps the figure that would be written."""

    figure: Any = None

    def __call__(self, figure: Any, path: Any) -> None:
        self.figure = figure

    def texts(self) -> list[str]:
        found = []
        for ax in self.figure.axes:
            found += [ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel(), *(t.get_text() for t in ax.texts)]
            legend = ax.get_legend()
            found += [t.get_text() for t in legend.get_texts()] if legend else []
        return [text for text in found if text]


@pytest.fixture
def canvas(monkeypatch: pytest.MonkeyPatch) -> Canvas:
    found = Canvas()
    for module in (auto, copula, curves, explanation, forest):
        monkeypatch.setattr(module, "write", found)
    return found


def widths(figure: Any) -> tuple[float, float]:
    """Of the widest title, and of the figure, in pixels."""
    figure.canvas.draw()
    titles = [ax.title for ax in figure.axes] + [ax._left_title for ax in figure.axes]
    return max(t.get_window_extent().width for t in titles), figure.bbox.width


def test_a_long_title_is_broken_and_cut(canvas: Canvas) -> None:
    result = prequential(varifold.AROW(), rows())
    curves.plot_summary(Summary([result], [0], None), "a.png", title=f"auto on {FILES}, vfs:0.5")
    widest, figure = widths(canvas.figure)
    assert widest < figure
    assert canvas.texts()[0].count("\n") == 2
    assert canvas.texts()[0].endswith("…")


def test_the_picture_of_a_run_names_its_window_and_counts_columns(canvas: Canvas) -> None:
    result = prequential(varifold.AROW(), rows())
    assert result.curve.columns.max() == 4
    assert result.curve.alive.max() > 4
    curves.plot_summary(Summary([result], [0], None), "a.png")
    texts = canvas.texts()
    assert any(text.startswith("last 20 0.") for text in texts)
    assert "alive 4" in texts
    assert "columns" in texts


def test_columns_alive_when_windows_are_merged() -> None:
    known = prequential(varifold.AROW(), rows(), curve_points=10).curve.columns
    assert known.tolist() == [4] * 10
    unknown = prequential(varifold.AROW(), iter(rows()), curve_points=10).curve.columns
    assert set(unknown.tolist()) == {4}


def test_an_expert_keeps_its_colour_whatever_its_place() -> None:
    some, others = auto.colours(["linear", "presence", "new one"]), auto.colours(["presence", "new one", "linear"])
    assert some == others
    for budget in ("fast", "balanced", "best"):
        names = list(varifold.AutoClassifier(budget=budget).report().experts)
        assert len(set(auto.colours(names).values())) == len(names)


def test_the_picture_of_auto_shows_the_moment_of_the_text(canvas: Canvas) -> None:
    model = varifold.AutoClassifier(budget="fast")
    model.learn_many([x for x, _ in rows(333)], [y for _, y in rows(333)])
    report = model.report()
    auto.draw_report(report, "a.png")
    texts = canvas.texts()
    assert any("after 333 instances" in text for text in texts)
    for name, weight in report.experts.items():
        assert f"{name} {weight:.0%}" in texts
    assert any("weight times share of presence" in text for text in texts)
    ends = [p.get_paths()[0].vertices[:, 0].max() for p in canvas.figure.axes[0].collections]
    assert set(ends) == {333.0}


def test_the_picture_of_a_copula_has_a_title_and_the_order_of_counting(canvas: Canvas) -> None:
    matrix = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]])
    copula.plot_correlation(["x10", "x2", "a"], matrix, "a.png")
    ax = canvas.figure.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "x2", "x10"]
    assert ax.images[0].get_array()[1, 2] == 0.5
    assert ax.images[0].get_array()[0, 1] == 0.2
    assert "Latent correlations of 3 features" in canvas.texts()
    assert style.natural(["x10", 3, "x9", "x", "2"]) == ["2", 3, "x", "x9", "x10"]


def test_bars_of_an_explanation_add_up_and_show_values(canvas: Canvas) -> None:
    parts = [("a", 2.0), ("b", -1.0), ("c=x", 0.5), ("d", 0.25)]
    explanation.plot_explanation(parts, {"a": 1.23456789, "b": 3, "d": 1.0}, "a.png", "why", most=2)
    ax = canvas.figure.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a = 1.2346", "b = 3", "2 others together"]
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(1.75)
    assert any("+1.750 in all" in text for text in canvas.texts())


def test_a_bar_of_a_feature_without_a_name(canvas: Canvas) -> None:
    explanation.plot_explanation([("", 2.0), (" ", 1.0)], {"": 1.5}, "a.png", "why")
    assert [t.get_text() for t in canvas.figure.axes[0].get_yticklabels()] == ['"" = 1.5', '" "']


@pytest.mark.parametrize("model", ["auto:budget=fast", "arow", "gaussiannb", "ovfm", "neighbours", "orf3v"])
def test_explain_draws_every_method(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from varifold.base.spec import parse_model

    learner = parse_model(model)()
    learner.learn_many([x for x, _ in rows()], [y for _, y in rows()])
    learner.save(tmp_path / "m")
    out = tmp_path / "why.png"
    words = ["explain", str(tmp_path / "m"), "--row", "load=0.7", "city=c3", "--plot", str(out), "--by-column"]
    assert main(words) == 0
    assert out.stat().st_size > 8_000
    assert "city=c3" not in capsys.readouterr().out
    if model != "orf3v":
        assert main([*words, "--feature", "load"]) == 2
        assert "--feature is for orf3v" in capsys.readouterr().err


def test_the_value_that_is_explained_is_marked(canvas: Canvas) -> None:
    learner = varifold.ORF3V()
    learner.learn_many([x for x, _ in rows()], [y for _, y in rows()])
    forest.plot_feature(learner, "load", "a.png", value=7.5)
    assert "here: 7.5" in canvas.texts()
    assert canvas.figure.axes[0].get_xlim()[1] >= 7.5


def test_a_study_of_many_files_has_a_short_title_and_a_name_of_its_own(tmp_path: Path) -> None:
    paths = []
    for name in FILES.split():
        (tmp_path / name).write_text("a,y\n1,0\n2,1\n")
        paths.append(str(tmp_path / name))
    raw = define(paths, "y", "arow", "none", 1)
    assert study_table("", raw).title == "readings_of_the_plant_01.csv and 11 more files"
    other = define([*paths[:-1], paths[0]], "y", "arow", "none", 1)
    assert raw["name"] != other["name"]
    assert len(raw["name"]) < 70
    assert study_table("", define(paths[:2], "y", "arow", "vfs:0.5", 1)).title.endswith("02.csv (vfs:0.5)")


def test_a_regressor_with_coverages_has_a_band_that_widens_while_a_sensor_is_silent(canvas: Canvas) -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for step in range(1500):
        load = float(rng.normal())
        pairs.append(({"other": 1.0} | ({} if step >= 1000 else {"load": load}), 5.0 * load + float(rng.normal())))
    result = prequential(varifold.AROWRegressor(coverages=(0.9,)), pairs)
    curves.plot_summary(Summary([result], [0], None), "unused.png")
    assert any(text.startswith("90% interval, contains") for text in canvas.texts())
    outline = canvas.figure.axes[-2].collections[0].get_paths()[0].vertices
    before, after = (outline[(lo < outline[:, 0]) & (outline[:, 0] < hi), 1] for lo, hi in ((500, 990), (1200, 1490)))
    assert np.ptp(after) > 2.0 * np.ptp(before)
    plain = prequential(varifold.AROWRegressor(), pairs[:200])
    curves.plot_summary(Summary([plain], [0], None), "unused.png")
    assert not any("interval" in text for text in canvas.texts())
