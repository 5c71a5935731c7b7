"""Names, labels and file names chosen by a stranger: they stay text in pages and on terminals."""

from __future__ import annotations

import csv
import os
import pty
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from varifold import AROW
from varifold.cli import main
from varifold.cli.output import visible

EVIL = "\"'><x-evil onload=alert(1)>&lt;</script></style></svg></title>"
NAMES = [EVIL, "[/red]", "\x1b]0;title\x07\x1b[31m", "=cmd()", "\u202eabc", "{0}%s", "$\\frac{1}{2}$"]
LABELS = [f"{EVIL}label", "[/b]", "\x1b[2J"]


class Elements(HTMLParser):
    """Elements and attributes that no page of ours has."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count += 1
        if tag.startswith("x-") or tag == "script" or any(name.startswith("on") for name, _ in attrs):
            self.foreign.append(self.get_starttag_text() or tag)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name = '<x-evil onload=1>[red]&"q.csv'
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, "column", "<x-evil>target"])
        for i in range(400):
            values = [(i * (j + 3)) % 11 - 5 if (i + j) % 4 or i < 200 else "" for j in range(len(NAMES))]
            writer.writerow([*values, [f"{EVIL}value", "[/x]", "plain"][i % 3], LABELS[i % 11 % 3]])
    return name


def test_pages_hold_them_as_text(data: str) -> None:
    target = ["--target", "<x-evil>target"]
    commands = [
        ["run", data, *target, "--model", "auto", "--save", "model.varifold", "--html", "run.html"],
        ["report", "model.varifold", "--html", "report.html"],
        ["watch", data, *target, "--html", "watch.html"],
        ["bench", "run", "--data", data, *target, "--models", "arow,pa", "--repeats", "2", "--html", "bench.html"],
    ]
    for command in commands:
        assert main(command) == 0
        page = Elements()
        text = Path(command[-1]).read_text(encoding="utf-8")
        page.feed(text)
        assert "x-evil" in text
        assert page.count > 20
        assert not page.foreign, command


def test_no_control_character_reaches_a_terminal(data: str, tmp_path: Path) -> None:
    model = AROW()
    for i in range(20):
        model.learn_one(dict.fromkeys(NAMES, float(i % 5)), LABELS[i % 2 * 2])
    model.save(tmp_path / "model.varifold")
    for command in (["inspect", "model.varifold"], ["inspect", "\x1b[31mnone"], ["watch", data, "--ignore", NAMES[0]]):
        shown: list[bytes] = []

        def read(fd: int, shown: list[bytes] = shown) -> bytes:
            shown.append(os.read(fd, 1 << 16))
            return shown[-1]

        pty.spawn([sys.executable, "-m", "varifold", *command], read)
        assert b"x1b" in b"".join(shown)
        assert b"\x1b" not in b"".join(shown)


def test_only_control_characters_are_escaped() -> None:
    assert visible("größe\t°C\n 漢字 🙂") == "größe\t°C\n 漢字 🙂"
    assert visible("\x1b[0m\x9b\x7f\r\u202e") == "\\x1b[0m\\x9b\\x7f\\r\\u202e"
