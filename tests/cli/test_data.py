"""``varifold data``: what it prints, writes and rejects."""

import json
from pathlib import Path

import pytest

from varifold import streams
from varifold.cli import main

DATA = Path(__file__).parent.parent / "data"


def run(capsys, *argv):
    code = main(["data", *map(str, argv)])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_list_names_every_set(capsys):
    code, out, _ = run(capsys, "list")
    assert code == 0
    for name in ("german", "imdb-7500", "hapt", "synthetic", "credit-a-complete"):
        assert any(line.startswith(f"{name} ") for line in out.splitlines())
    code, out, _ = run(capsys, "list", "--format", "json")
    german = next(entry for entry in json.loads(out) if entry["name"] == "german")
    assert (german["rows"], german["features"], german["classes"]) == (1000, 24, 2)


def test_info(capsys):
    code, out, _ = run(capsys, "info", "pima")
    assert code == 0
    assert "Pima Indians diabetes" in out
    assert "sha256 33e704cdafa8" in out
    code, _, err = run(capsys, "info", "germna")
    assert code == 2
    assert err.startswith("varifold: no data set is called 'germna'; did you mean german or ")
    assert len(err.strip().splitlines()) == 1


def test_export_reads_back(capsys, tmp_path):
    path = tmp_path / "s.csv"
    assert run(capsys, "export", "synthetic", "--scenario", "vfs:0.5", "--output", path)[0] == 0
    stream = streams.read(path, target="label")
    blocks = list(stream.blocks())
    assert sum(map(len, blocks)) == 2000
    assert sum(len(b.indices) for b in blocks) == pytest.approx(18_000, rel=0.05)
    _, out, _ = run(capsys, "export", "synthetic", "--to", "jsonl")
    assert len(json.loads(out.splitlines()[0])) == 19


def test_show_a_set_and_files(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "p.png"
    code, out, _ = run(capsys, "show", "synthetic", "--scenario", "trapezoidal", "--plot", picture)
    assert code == 0
    assert "2,000 rows, 18 columns" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, out, _ = run(capsys, "show", DATA / "jan.csv", DATA / "feb.csv", "--target", "y", "--format", "json")
    assert json.loads(out)["columns"] == 3
    assert json.loads(out)["absent"] == pytest.approx(1 / 6)


def test_show_reports_what_was_left_out_and_what_is_wrong(capsys):
    code, _, err = run(capsys, "show", DATA / "ragged.csv", "--target", "y", "--on-error", "skip")
    assert code == 0
    assert "2 rows left out, the first:" in err
    assert run(capsys, "show", DATA / "ragged.csv", "--target", "y")[0] == 1
    code, _, err = run(capsys, "show", "germany-2026")
    assert code == 2
    assert "no file has that name" in err
    assert run(capsys, "show", DATA / "jan.csv", "--types", "x")[0] == 2
    assert run(capsys, "show", DATA / "header_only.csv")[0] == 1


def test_show_cuts_long_lists_of_labels(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"1,{label}\n" for label in [*map(str, range(25)), "24", "24", "23"] * 3))
    code, out, err = run(capsys, "show", path, "--target", "y", "--target-type", "class")
    assert (code, err) == (0, "")
    assert out.startswith("a.csv: 84 rows")
    assert "labels: 24 9, 23 6, 0 3, 1 3, " in out
    assert out.endswith(", 7 3 and 15 more (--format json has all)\n")
    code, out, _ = run(capsys, "show", path, "--target", "y", "--target-type", "class", "--format", "json")
    assert len(json.loads(out)["labels"]) == 25


def test_fetch_goes_on_after_a_failure(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("VARIFOLD_DATA", str(tmp_path))
    code, out, err = run(capsys, "fetch", "hapt", "synthetic")
    assert code == 1
    assert "synthetic: generated" in out
    assert "hapt" in err
