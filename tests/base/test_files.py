"""Model files: whole or not there, refused when anything is wrong with them, read for ever once written."""

from __future__ import annotations

import json
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import varifold
from varifold.base import files
from varifold.errors import ModelFileError

FORMAT_1 = Path(__file__).parents[1] / "data" / "format1_olvf.safetensors"


def taught(model: Any, steps: int = 60) -> Any:
    for t in range(steps):
        model.learn_one({"pressure": t % 7, 3: 1.5 * (t % 2), "valve": "open" if t % 3 else "shut"}, bool(t % 2))
    return model


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    taught(varifold.OLVF(B=0.5)).save(path)
    return path


# ---------------------------------------------------------------- for ever


def test_format_1_is_read_for_ever() -> None:
    model = varifold.load(FORMAT_1)
    assert isinstance(model, varifold.OLVF)
    assert (model.C, model.B, model.max_features, model.evict) == (0.1, 0.5, 40, "lightest")
    assert model.classes == ["ok", 7, 2.5, b"\x00", ("a", 1), True]
    assert model.steps == 60
    assert set(model.features) == {"pressure", -3, "größe 測", "", "valve=open", "valve=shut"}
    told = json.loads(FORMAT_1.with_suffix(".json").read_text())
    for x, margins in told:
        found = model.margins_one({int(k) if k == "-3" else k: v for k, v in x.items()})
        np.testing.assert_allclose(list(found.values()), margins, rtol=1e-12)
    model.learn_one({"pressure": 1.0}, "ok")


# ---------------------------------------------------------------- writing


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


def test_others_may_read_it_as_the_umask_says(saved: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o666 & ~mask


def test_a_label_that_no_file_can_hold_is_refused_before_writing(tmp_path: Path) -> None:
    model = varifold.OLVF()
    model.learn_one({"a": 1.0}, frozenset({1}))
    with pytest.raises(ModelFileError, match="frozenset"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- refusing


def test_every_truncation_is_refused(saved: Path, tmp_path: Path) -> None:
    data = saved.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, *range(101, len(data), 97), len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(ModelFileError, match="cut"):
            varifold.load(tmp_path / "cut")


def test_every_flipped_byte_is_found(saved: Path, tmp_path: Path) -> None:
    data = bytearray(saved.read_bytes())
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place * 5 % 8)
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(ModelFileError):
            varifold.load(tmp_path / "damaged")


def test_bytes_after_the_end_are_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"more")
    with pytest.raises(ModelFileError):
        varifold.load(saved)


@pytest.mark.parametrize(
    "foreign",
    [
        b"PK\x03\x04" + bytes(200),
        pickle.dumps(print),
        b"a,b,c\n1,2,3\n" * 20,
        safetensors.numpy.save({"weight": np.ones(3)}),
        safetensors.numpy.save({"weight": np.ones(3)}, metadata={"format": "pt"}),
        (2).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"{[]}",
    ],
    ids=["zip", "pickle", "csv", "safetensors", "another's metadata", "empty", "no JSON"],
)
def test_foreign_files_are_refused(tmp_path: Path, foreign: bytes) -> None:
    (tmp_path / "foreign").write_bytes(foreign)
    with pytest.raises(ModelFileError, match="foreign"):
        varifold.load(tmp_path / "foreign")


def test_a_newer_format_says_so(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FORMAT", 2)
    taught(varifold.OLVF()).save(saved)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"format 2.*upgrade"):
        varifold.load(saved)


def rewritten(path: Path, change: Any) -> None:
    """The file with its header and arrays changed and a right checksum."""
    header, arrays = files.read(path)
    change(header, arrays)
    files.write(path, header, arrays)


CHANGES: dict[str, Any] = {
    "a method of no one": lambda h, a: h.update(method="nobody"),
    "no method": lambda h, a: h.pop("method"),
    "no parameters": lambda h, a: h.pop("params"),
    "no labels": lambda h, a: h.pop("labels"),
    "a strange parameter": lambda h, a: h["params"].update(speed=3),
    "a parameter out of range": lambda h, a: h["params"].update(C=-1.0),
    "another method's arrays": lambda h, a: h.update(method="arow", params={}),
    "a missing array": lambda h, a: a.pop("scaler"),
    "a missing state": lambda h, a: a.pop("model.state"),
    "names cut short": lambda h, a: a.update({"names.kind": a["names.kind"][:-2]}),
    "offsets beyond the bytes": lambda h, a: a.update({"names.offsets": a["names.offsets"] + 1000}),
    "one label too many": lambda h, a: h["labels"].append("more"),
    "one label too few": lambda h, a: h["labels"].pop(),
    "a short state": lambda h, a: a.update({"model.state": a["model.state"][:-1]}),
    "a long state": lambda h, a: a.update({"model.state": np.repeat(a["model.state"], 50, axis=0)}),
    "a flat state": lambda h, a: a.update({"model.state": a["model.state"].ravel()}),
    "a long scaler": lambda h, a: a.update({"scaler": np.repeat(a["scaler"], 500, axis=0)}),
    "a column nowhere": lambda h, a: a["space.column"].fill(9999),
    "a free slot nowhere": lambda h, a: a.update({"space.free": np.array([9999], dtype=np.int32)}),
    "kinds of no kind": lambda h, a: a["space.kind"].fill(4),
    "counts cut short": lambda h, a: a.update({"counts": a["counts"][:0]}),
    "an empty step": lambda h, a: a.update({"step": a["step"][:0]}),
    "a label of no kind": lambda h, a: h["labels"].__setitem__(0, {"set": [1], "b": 2}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_content_that_does_not_fit_is_refused(saved: Path, change: Any) -> None:
    rewritten(saved, change)
    with pytest.raises(ModelFileError):
        varifold.load(saved)


def test_loading_asks_for_the_right_class(saved: Path) -> None:
    with pytest.raises(ModelFileError, match="OLVF, not a AROW"):
        varifold.AROW.load(saved)
    assert isinstance(varifold.OLVF.load(saved), varifold.OLVF)


# ---------------------------------------------------------------- names


def test_names_of_every_kind_come_back() -> None:
    names: list[Any] = [None, "", "a", "1", 1, -1, 10**30, "größe", "測", "\ud800", "a\x00b", "=", "a=b", " " * 5000]
    assert files.unpack_names(files.pack_names(names)) == names
    assert [type(n) for n in files.unpack_names(files.pack_names(names))] == [type(n) for n in names]


def test_odd_names_through_a_file(tmp_path: Path) -> None:
    model = varifold.AROW()
    odd: dict[Any, Any] = {"": 1.0, "\ud800": 2.0, "a\x00b": 3.0, 10**30: 4.0, -1: 5.0, "1": 6.0, 1: 7.0, "c": "\udfff"}
    for t in range(20):
        model.learn_one({k: v if isinstance(v, str) else v * (t % 2) for k, v in odd.items()}, t % 2)
    model.save(tmp_path / "odd")
    again = varifold.load(tmp_path / "odd")
    assert again.features == model.features
    assert again.margins_one(odd) == model.margins_one(odd)


def test_a_hundred_thousand_names(tmp_path: Path) -> None:
    model = varifold.OLVF()
    model.learn_one({f"word {i}" if i % 2 else i: 1.0 for i in range(100_000)}, "a")
    model.learn_one({f"word {i}" if i % 2 else i: 2.0 for i in range(0, 100_000, 3)}, "b")
    model.save(tmp_path / "wide")
    again = varifold.load(tmp_path / "wide")
    assert len(again.features) == 100_000
    x = {99_996: 1.0, "word 99999": 1.0}
    assert again.margins_one(x) == model.margins_one(x)
