"""Pages of one's own tables: true in every line, and the line that reproduces them works."""

import html
import re
import shlex
from types import SimpleNamespace

import pytest

from varifold.cli import main
from varifold.errors import DataError

TOML = """
metrics = ["cer"]
repeats = 2
[[setting]]
name = "half"
scenario = "vfs:0.5"
[[data]]
name = "made"
load = "synthetic"
[[method]]
name = "AROW"
default = "arow"
"""


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plant one.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 3},{'ok' if i % 7 > 2 else 'bad'}\n" for i in range(120)))
    return path


def test_the_table_is_printed_and_the_page_names_the_study(capsys, tmp_path, rows):
    argv = ["bench", "run", "--data", str(rows), "--target", "y", "--models", "arow,olvf", "--name", "first try"]
    assert main([*argv, "--html", "page.html", "--markdown", "page.md", "--store", "s.sqlite"]) == 0
    out = capsys.readouterr().out
    assert "arow" in out
    assert "olvf" in out
    for page in ("page.html", "page.md"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "first try: plant one.csv" in text
        assert str(tmp_path) not in text
        assert "as paper" not in text
        assert "permutations" not in text  # rows keep their order here
        assert "rinted" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def test_the_line_of_the_page_works(capsys, tmp_path, rows):
    argv = ["bench", "run", "--data", str(rows), "--target", "y", "--models", "arow", "--name", "again", "--shuffle"]
    assert main([*argv, "--repeats", "2", "--html", "page.html", "--store", "s.sqlite"]) == 0
    text = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    line = re.search(r"^varifold bench run .*?$", text.split("<pre")[1], re.MULTILINE)[0].partition("</pre>")[0]
    first = capsys.readouterr().out
    assert main([*shlex.split(line)[1:], "--store", "s.sqlite"]) == 0
    done = capsys.readouterr()
    assert "0 of them to be run" in done.err
    assert done.out == first


def test_a_table_without_published_numbers_has_no_legend_of_them(tmp_path, rows):
    (tmp_path / "mine.toml").write_text(TOML)
    assert main(["bench", "run", "mine.toml", "--html", "page.html", "--store", "s.sqlite"]) == 0
    text = re.sub(r"<style>.*?</style>", "", (tmp_path / "page.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    for word in ("as paper", "as the paper", "rinted", "run again"):
        assert word not in text


def test_figures_are_drawn_although_a_set_is_missing(capsys, tmp_path, monkeypatch, rows):
    def absent(path, repeats):
        raise DataError("data set 'x' has no verified download")

    def drawn(path, repeats):
        open(path, "w").close()

    both = [SimpleNamespace(number=n, title=t, draw=d) for n, t, d in ((1, "first", absent), (2, "second", drawn))]
    monkeypatch.setattr("varifold.report.papers.figures", lambda paper: both)
    assert main(["bench", "figures", "olvf", "--out", "figures"]) == 1
    out, err = capsys.readouterr()
    assert "second" in out
    assert "first: not drawn, data set 'x' has no verified download" in err
