"""The figures of the papers: all of them are drawn, from runs, and say what they show."""

import numpy as np
import pytest

from varifold.cli import main
from varifold.report.papers import PAPERS, figures

pytest.importorskip("matplotlib")


@pytest.fixture
def drawn(monkeypatch):
    """Figures as they are handed over to be written."""
    found = []
    for name in ("cwfe", "olvf", "orf3v", "ovfiv", "ovfm"):
        monkeypatch.setattr(f"varifold.report.papers.{name}.write", lambda figure, path: found.append(figure))
    return found


def test_every_figure_of_the_papers_is_there():
    numbers = {paper: [f.number for f in figures(paper)] for paper in PAPERS}
    assert numbers == {
        "olvf": ["1"],
        "ovfm": ["1", "2", "3", "4"],
        "orf3v": ["1", "2"],
        "cwfe": ["1", "2"],
        "ovfiv": ["1", "2"],
    }


def test_the_command_draws_a_paper(tmp_path, capsys):
    assert main(["bench", "figures", "orf3v", "--repeats", "1", "--out", str(tmp_path / "new")]) == 0
    for number in (1, 2):
        assert (tmp_path / "new" / f"orf3v-{number}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert "t-digests and empirical distributions" in capsys.readouterr().out
    assert main(["bench", "figures", "ovfn"]) == 2
    assert "did you mean ovfm" in capsys.readouterr().err


def test_centroids_lie_on_the_empirical_distribution(drawn):
    figures("orf3v")[0].draw("unused.png", 1)
    for ax in drawn[0].axes:
        lines = ax.lines
        for step, marks in zip(lines[::2], lines[1::2], strict=True):
            values, _ = step.get_data()
            at, found = marks.get_data()
            expected = np.searchsorted(values, at, side="right") / len(values)
            assert np.abs(found - expected).max() < 0.05


@pytest.mark.real_data
def test_curves_end_at_the_numbers_of_the_table(drawn):
    from varifold.bench.tables import find_table
    from varifold.report.papers.runs import cells_of, run_cell

    figures("ovfm")[3].draw("unused.png", 1)
    assert drawn[0].axes[0].get_title(loc="left") == "ionosphere"
    table = find_table("ovfm-2")
    setting = next(s for s in table.settings if s.name == "capricious")
    cell = cells_of(table, setting, table.data[0], "OVFM", "paper", 1)[0]
    ends = [float(line.get_ydata()[-1]) for line in drawn[0].axes[0].lines]
    assert run_cell(cell).cer == pytest.approx(ends[2])


def test_the_removed_values_do_not_change_which_feature_matters(drawn):
    figures("orf3v")[1].draw("unused.png", 1)
    widths = [[bar.get_x() + bar.get_width() for bar in ax.patches] for ax in drawn[0].axes]
    assert [int(np.argmax(w)) for w in widths] == [0] * 5


@pytest.mark.real_data
def test_confidences_of_reviews_grow(drawn):
    figures("olvf")[0].draw("unused.png", 1)
    left, right = drawn[0].axes
    olvf, olsf, loss = (line.get_ydata() for line in left.lines)
    assert olvf[-1] < olsf[-1]
    assert loss[-1] < loss[0]
    assert right.lines[2].get_ydata()[-1] > 0.6


def test_the_picture_of_reviews_shows_the_mean_of_its_streams(drawn, monkeypatch):
    from varifold.report.papers import olvf

    seeds = []

    def watched(cell):
        seeds.append(cell.seed)
        share = np.full(1000, 0.1 * (1 + cell.seed))
        return {"wrong": share, "losses": share, "confidences": np.column_stack([share, share])}

    monkeypatch.setattr(olvf, "_watched", watched)
    figures("olvf")[0].draw("unused.png", 3)
    assert sorted(seeds) == [0, 0, 1, 1, 2, 2]
    assert drawn[0].axes[0].lines[0].get_ydata()[-1] == pytest.approx(0.2)
