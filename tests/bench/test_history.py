"""The standing record of speed; the measuring itself is not tested, as speed is nothing to assert."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture
def history(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    found = importlib.import_module("benchmarks.speed.history")
    yield found
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_lines_come_back_as_they_were_written(history, tmp_path):
    path = tmp_path / "history.csv"
    assert history.read_record(path) == []
    first = [history.Entry("2026-01-01T00:00+00:00", "abc", "cpu x2", "block, C", 1.5)]
    second = [history.Entry("2026-01-02T00:00+00:00", "def+", "cpu x2", "block, C", 1.25)]
    history.append(path, first)
    history.append(path, second)
    assert history.read_record(path) == first + second
    assert path.read_text().count("date,commit") == 1


def test_only_the_last_entry_of_the_same_machine_and_measure_counts(history):
    def entry(machine, measure, ratio, commit="new"):
        return history.Entry("2026-01-01T00:00+00:00", commit, machine, measure, ratio)

    earlier = [
        entry("a", "read", 1.0, "first"),
        entry("a", "read", 2.0, "second"),
        entry("b", "read", 1.0, "elsewhere"),
        entry("a", "learn", 1.0, "second"),
    ]
    now = [entry("a", "read", 2.19), entry("a", "learn", 1.11), entry("a", "new measure", 9.0)]
    slower = history.slowdowns(earlier, now)
    assert [(old.commit, new.measure) for old, new in slower] == [("second", "learn")]
    assert history.slowdowns(earlier, [entry("c", "read", 9.0)]) == []


def test_the_picture_takes_several_machines(history, tmp_path):
    path = tmp_path / "history.png"
    entries = [
        history.Entry(f"2026-01-0{day}T00:00+00:00", f"c{day}", machine, measure, day / 10)
        for day in (1, 2)
        for machine in ("a x2", "b x8")
        for measure in ("read", "learn")
    ]
    history.draw(entries, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_passes_take_turns_until_there_are_enough(history, monkeypatch):
    monkeypatch.setattr(history, "PASSES", 3)
    ran = []
    best = history.best_times({"one": lambda: ran.append("one"), "two": lambda: ran.append("two")})
    assert ran == ["one", "two"] * 3
    assert set(best) == {"one", "two"}
