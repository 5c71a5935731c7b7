"""A model file is whole or not there, whatever happens while it is written."""

from __future__ import annotations

import concurrent.futures
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import varifold
from tests.base.saved_models import taught
from varifold.errors import ModelFileError


def test_exactly_that_path_and_nothing_else(tmp_path: Path) -> None:
    taught(varifold.AROW()).save(tmp_path / "a.model.with.dots")
    assert [p.name for p in tmp_path.iterdir()] == ["a.model.with.dots"]


def test_a_failed_write_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        taught(varifold.OLVF(), 5).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_failed_fsync_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk is gone"):
        taught(varifold.OLVF(), 5).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_device_or_folder_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(ModelFileError, match=f"{name} is a folder or a device"):
            varifold.OLVF().save(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "pipe"]


def test_an_error_of_the_system_names_the_path_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        varifold.OLVF().save(tmp_path / "missing" / "model")
    assert caught.value.filename == str(tmp_path / "missing" / "model")


def test_others_may_read_it_as_the_umask_allows(saved: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o666 & ~mask


def test_a_label_that_no_file_can_hold_is_rejected_before_writing(tmp_path: Path) -> None:
    model = varifold.OLVF()
    model.learn_one({"a": 1.0}, frozenset({1}))
    with pytest.raises(ModelFileError, match="frozenset"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- temporary files of killed processes

_SAVE_FOR_EVER = """
import sys, varifold
model = varifold.OLVF()
model.learn_one({f"word {i}": 1.0 for i in range(2000)}, "a")
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.part"))


def test_the_next_save_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    path = tmp_path / "model"
    left = 0
    for _ in range(40):
        child = subprocess.Popen([sys.executable, "-c", _SAVE_FOR_EVER, path], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 10.0
        while not parts(tmp_path) and time.monotonic() < deadline:
            pass
        child.kill()
        child.wait()
        child.stdout.close()
        left = len(parts(tmp_path))
        if left:
            break
    assert left, "no process was killed while it wrote"
    varifold.OLVF().save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_of_a_process_that_is_writing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One save starts while another is about to rename its file."""
    path = tmp_path / "model"
    replace, seen = os.replace, []

    def other_saves_first(source: Any, target: Any) -> None:
        monkeypatch.setattr(os, "replace", replace)
        taught(varifold.OLVF(), 5).save(path)
        seen.extend(parts(tmp_path))
        replace(source, target)

    monkeypatch.setattr(os, "replace", other_saves_first)
    taught(varifold.AROW(), 5).save(path)
    assert len(seen) == 1, "the second save removed the file of the first"
    assert isinstance(varifold.load(path), varifold.AROW)
    assert list(tmp_path.iterdir()) == [path]


def test_only_files_of_its_own_pattern_are_removed(tmp_path: Path) -> None:
    stale = tmp_path / "model.varifold-0123abcd.part"
    others = [
        tmp_path / name
        for name in (
            "model.part",
            "model.mine.part",
            "model2.varifold-0123abcd.part",
            "model.varifold-0123abcd",
            "model.varifold-0123abcd.part.old",
            "other.varifold-0123abcd.part",
        )
    ]
    folder = tmp_path / "model.varifold-ffffffff.part"
    folder.mkdir()
    link = tmp_path / "model.varifold-eeeeeeee.part"
    link.symlink_to(others[0])
    for file in (stale, *others):
        file.write_bytes(b"content")
    varifold.OLVF().save(tmp_path / "model")
    assert not stale.exists()
    assert sorted(p for p in tmp_path.iterdir() if p.name != "model") == sorted([*others, folder, link])


def test_two_threads_save_to_one_path(tmp_path: Path) -> None:
    """Each with its own learner: every save ends well, and one of the two files is there."""
    path = tmp_path / "model"
    models = [taught(varifold.OLVF()), taught(varifold.AROW())]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(lambda m: [m.save(path) for _ in range(50)], model) for model in models]:
            done.result()
    assert path.read_bytes() in {model.to_bytes() for model in models}
    assert list(tmp_path.iterdir()) == [path]


def test_no_folder_is_opened_where_that_cannot_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = os.open

    def watched(path: Any, *rest: Any, **more: Any) -> int:
        opened.append(Path(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", watched)
    varifold.OLVF().save(tmp_path / "durable")
    assert tmp_path in opened
    opened.clear()
    monkeypatch.setattr(sys, "platform", "win32")
    varifold.OLVF().save(tmp_path / "model")
    monkeypatch.undo()
    assert tmp_path not in opened
    assert isinstance(varifold.load(tmp_path / "model"), varifold.OLVF)
