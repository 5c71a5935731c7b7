"""Model files: whole or not there, refused when anything is wrong with them, read for ever once written."""

from __future__ import annotations

import concurrent.futures
import fractions
import hashlib
import json
import os
import pickle
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import varifold
from varifold import perkey
from varifold.base import files
from varifold.errors import DataError, ModelFileError

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


def test_format_1_is_written_no_more_and_its_content_is_kept(tmp_path: Path) -> None:
    header, arrays = files.read(FORMAT_1)
    files.write(tmp_path / "again", header, arrays)
    assert (tmp_path / "again").stat().st_size < 0.7 * FORMAT_1.stat().st_size
    again = files.read(tmp_path / "again")
    assert again[0] == {**header, "version": varifold.__version__}
    assert again[1].keys() == arrays.keys()
    for name, array in arrays.items():
        assert (again[1][name].dtype, again[1][name].shape) == (array.dtype, array.shape)
        assert again[1][name].tobytes() == array.tobytes()


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


def with_head(head: Any, body: bytes = b"") -> bytes:
    """A safetensors file with this header, given as JSON text or as what it says."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + body


def with_description(text: str) -> bytes:
    """A file without arrays, with this description of the learner and a right checksum."""
    meta = {"varifold.format": "1", "varifold.header": text, "varifold.sha256": files._checksum(text, {})}
    return safetensors.numpy.save({}, metadata=meta)


def with_parts(index: Any, packed: bytes, text: str = '{"method":"olvf","params":{},"labels":[]}') -> bytes:
    """A file of format 2 with this index, given as bytes or as what it says, and a right checksum."""
    coded = index if isinstance(index, bytes) else zlib.compress(json.dumps(index).encode())
    digest = hashlib.sha256(b"\n".join([text.encode(), coded, packed])).hexdigest()
    meta = {"varifold.format": "2", "varifold.header": text, "varifold.sha256": digest}
    return files._container(meta, {"index": coded, "packed": packed})


_DEEP = "[" * 100_000 + "]" * 100_000
_DEEP_LABEL = '{"tuple":[' * 2_000 + "]}" * 2_000
_BFLOAT = {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}
_KEYS = '{"method":"perkey","params":{"model":{"method":"arow","params":%s},"key":1,"most":3},"labels":[],"steps":%s}'
HOSTILE: dict[str, bytes] = {
    "metadata is a number": with_head({"__metadata__": 5}),
    "metadata is a list": with_head({"__metadata__": []}),
    "metadata is null": with_head({"__metadata__": None}),
    "format is a number": with_head({"__metadata__": {"varifold.format": 1}}),
    "format of 5,000 digits": with_head({"__metadata__": {"varifold.format": "9" * 5000}}),
    "deep header": with_head(b'{"a":' + _DEEP.encode() + b"}"),
    "array of an unknown type": with_head({"__metadata__": {"varifold.format": "1"}, "a": _BFLOAT}, b"ab"),
    "deep description": with_description('{"method":"olvf","params":{},"labels":' + _DEEP + "}"),
    "deep label of learners by key": with_description(
        (_KEYS % ("{}", "1")).replace('"labels":[]', f'"labels":[{_DEEP_LABEL}]')
    ),
    "endless steps": with_description(_KEYS % ("{}", "Infinity")),
    "no parts": with_head({"__metadata__": {"varifold.format": "2"}}),
    "an index that is no list": with_parts(5, b""),
    "an index not packed": with_parts(b"[]", b""),
    "an index of everything": with_parts(zlib.compress(b"[" + b" " * (1 << 27)), b""),
    "an array of no type": with_parts([["a", "<c16", [1]]], bytes(20)),
    "an array without a name": with_parts([[["a"], "<f8", [1]]], bytes(20)),
    "an array of a negative shape": with_parts([["a", "<f8", [-1, -1]]], bytes(1)),
    "an array of half a shape": with_parts([["a", "<f8", [0.5]]], bytes(1)),
    "an array of all memory": with_parts([["a", "<f8", [1 << 50]]], bytes(1)),
    "an array of more than is there": with_parts([["a", "<f8", [9]]], bytes(1)),
    "parameters are a list": with_description(_KEYS % ("[]", "1")),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused(data: bytes) -> None:
    with pytest.raises(ModelFileError, match=r"the data \(") as caught:
        perkey.from_bytes(data)
    assert len(str(caught.value)) < 1_000


def test_a_newer_format_says_so(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FORMAT", 4)
    monkeypatch.setattr(files, "YOUNG_FORMAT", 4)
    taught(varifold.OLVF()).save(saved)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"format 4.*upgrade"):
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


# ---------------------------------------------------------------- bytes in memory


def test_bytes_are_the_file(saved: Path) -> None:
    model = varifold.OLVF.load(saved)
    assert model.to_bytes() == saved.read_bytes()
    again = varifold.from_bytes(model.to_bytes())
    assert isinstance(again, varifold.OLVF)
    assert again.to_bytes() == model.to_bytes()
    taught(again, 20)
    taught(model, 20)
    assert again.to_bytes() == model.to_bytes()


def test_bytes_are_checked_as_a_file_is(saved: Path) -> None:
    data = saved.read_bytes()
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        with pytest.raises(ModelFileError, match=r"the data \("):
            varifold.from_bytes(bytes(damaged))
    with pytest.raises(ModelFileError, match="truncated"):
        varifold.from_bytes(data[:-1])
    with pytest.raises(ModelFileError, match="OLVF, not a AROW"):
        varifold.AROW.from_bytes(data)


@pytest.mark.parametrize("given", [None, "text", 3, Path("model")])
def test_other_things_than_bytes_are_refused(given: Any) -> None:
    with pytest.raises(DataError, match="from_bytes takes the bytes"):
        varifold.from_bytes(given)


def test_a_file_names_the_version_that_wrote_it(saved: Path) -> None:
    assert files.read(saved)[0]["version"] == varifold.__version__


def test_what_another_version_wrote_and_this_one_cannot_read_names_both(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "__version__", "99.0.0")
    rewritten(saved, lambda h, a: h["params"].update(speed=3))
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=f"speed.*written by varifold 99.0.0, this is {varifold.__version__}"):
        varifold.load(saved)


def test_the_base_class_in_a_file_is_refused(saved: Path) -> None:
    place = f"{varifold.VaryingClassifier.__module__}:VaryingClassifier"
    rewritten(saved, lambda h, a: h.update(method=place, params={}))
    with pytest.raises(ModelFileError):
        varifold.load(saved)


# ---------------------------------------------------------------- what load would refuse, save refuses


class Spoiled:
    """An engine whose arrays are changed on the way out."""

    def __init__(self, engine: Any, change: Any) -> None:
        self._engine, self._change = engine, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def dump(self) -> Any:
        names, labels, arrays = self._engine.dump()
        self._change(arrays)
        return names, labels, arrays


SPOILS: dict[str, Any] = {
    "NaN": lambda a: a["model.state"].fill(np.nan),
    "infinity": lambda a: a["counts"].fill(np.inf),
    "a negative step": lambda a: a["step"].fill(-1),
    "a missing array": lambda a: a.pop("scaler"),
}


@pytest.mark.parametrize("change", SPOILS.values(), ids=SPOILS)
def test_a_state_that_load_refuses_is_not_saved_and_the_good_file_stays(saved: Path, change: Any) -> None:
    good = saved.read_bytes()
    model: Any = varifold.load(saved)
    model._engine = Spoiled(model._engine, change)
    with pytest.raises(ModelFileError, match="this OLVF was not saved, because it could not be loaded again"):
        model.save(saved)
    with pytest.raises(ModelFileError, match="not saved"):
        model.to_bytes()
    assert saved.read_bytes() == good
    assert list(saved.parent.iterdir()) == [saved]


def test_a_parameter_changed_to_nonsense_is_not_saved(saved: Path) -> None:
    model: Any = varifold.load(saved)
    for nonsense in (-1.0, object()):
        model.C = nonsense
        with pytest.raises(ModelFileError, match="not saved"):
            model.save(saved)
    assert varifold.OLVF.load(saved).C == varifold.OLVF().C


def test_parameters_of_any_numeric_type_are_saved() -> None:
    numpy_scalars: dict[str, Any] = {"max_features": np.int64(30), "majority_bias": np.bool_(False), "C": np.float32(2)}
    model = varifold.OLVF(**numpy_scalars)
    again = varifold.from_bytes(taught(model).to_bytes())
    assert again._get_params() == model._get_params()
    assert type(again.max_features) is int
    exact: Any = fractions.Fraction(1, 4)
    assert varifold.OLVF.from_bytes(varifold.OLVF(C=exact).to_bytes()).C == 0.25


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
