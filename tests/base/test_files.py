"""Model files: plain safetensors, equal to the bytes in memory, whatever the names."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors

import varifold
from tests.base.saved_models import rewritten, taught
from varifold.base import files
from varifold.errors import DataError, ModelFileError

# ---------------------------------------------------------------- the format


def test_any_safetensors_tool_opens_a_file(saved: Path) -> None:
    _, arrays = files.read(saved)
    with safetensors.safe_open(saved, framework="numpy") as opened:
        (entry,) = opened.metadata().values()
        assert set(opened.keys()) == arrays.keys()
        for name, array in arrays.items():
            held = opened.get_tensor(name)
            assert (held.dtype, held.shape, held.tobytes()) == (array.dtype, array.shape, array.tobytes())
    description = json.loads(entry)
    assert list(description) == ["sha256", "format", "header"]
    assert description["header"]["method"] == "olvf"
    assert description["header"]["params"]["B"] == 0.5


def test_the_digest_is_that_of_all_other_bytes(saved: Path) -> None:
    data = saved.read_bytes()
    digest = json.loads(files._metadata(data, saved)["varifold"])["sha256"].encode()
    assert hashlib.sha256(data.replace(digest, b"", 1)).hexdigest().encode() == digest


@pytest.mark.parametrize("kind", files._TYPES)
def test_arrays_of_every_type_and_shape_come_back(kind: str) -> None:
    whole = np.arange(24).astype(kind)
    given = {
        "one": whole,
        "cube": whole.reshape(2, 3, 4),
        "turned": whole.reshape(2, 3, 4).T,
        "every other": whole[::2],
        "none": whole[:0].reshape(3, 0),
        'größe " \\': whole[:1],
    }
    _, arrays = files.decode(files.encode({"method": "any"}, given), "it")
    assert arrays.keys() == given.keys()
    for name, array in given.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(arrays[name], array)
        assert arrays[name].flags.writeable


def test_numbers_that_a_file_cannot_hold_are_rejected() -> None:
    with pytest.raises(ValueError, match="complex128"):
        files.encode({"method": "any"}, {"a": np.zeros(2, dtype=complex)})


def test_labels_of_every_type_come_back() -> None:
    model = varifold.OLVF()
    labels = ["ok", 7, 2.5, b"\x00", ("a", 1), True]
    for t in range(60):
        model.learn_one({"pressure": t % 7, "valve": "open" if t % 3 else "shut"}, labels[t % 6])
    again = varifold.from_bytes(model.to_bytes())
    assert again.classes == model.classes
    assert [type(y) for y in again.classes] == [type(y) for y in model.classes]


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
def test_other_things_than_bytes_are_rejected(given: Any) -> None:
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


def test_the_base_class_in_a_file_is_rejected(saved: Path) -> None:
    place = f"{varifold.VaryingClassifier.__module__}:VaryingClassifier"
    rewritten(saved, lambda h, a: h.update(method=place, params={}))
    with pytest.raises(ModelFileError):
        varifold.load(saved)
