"""Model files that are damaged, hostile or do not fit are rejected, by load and by save."""

from __future__ import annotations

import fractions
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import varifold
from tests.base.saved_models import rewritten, taught
from varifold.base import files
from varifold.errors import ModelFileError


def test_every_truncation_is_rejected(saved: Path, tmp_path: Path) -> None:
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


def test_bytes_after_the_end_are_rejected(saved: Path) -> None:
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
def test_foreign_files_are_rejected(tmp_path: Path, foreign: bytes) -> None:
    (tmp_path / "foreign").write_bytes(foreign)
    with pytest.raises(ModelFileError, match="foreign"):
        varifold.load(tmp_path / "foreign")


def with_head(head: Any, body: bytes = b"") -> bytes:
    """A safetensors file with this header, given as JSON text or as its content."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + body


def with_digest(meta: Any, arrays: dict[str, Any] | None = None, body: bytes = b"") -> bytes:
    """A file whose content alone is wrong: metadata as JSON text or as its content, and a right digest."""
    text = meta if isinstance(meta, str) else json.dumps(meta, separators=(",", ":"))
    blank = f'{{"sha256":"{"0" * 64}",{text[1:]}'
    data = with_head({"__metadata__": {"varifold": blank}, **(arrays or {})}, body)
    at = files._digest_place(data)
    return data[:at] + files._digest(data, at) + data[at + 64 :]


def with_description(text: str) -> bytes:
    """A file without arrays, with this header of the learner."""
    return with_digest(f'{{"format":1,"header":{text}}}')


def with_array(name: str, **entry: Any) -> bytes:
    """A file with one array of 8 bytes, described like this."""
    kind = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    header = {"method": "olvf", "params": {}, "labels": []}
    return with_digest({"format": 1, "header": header}, {name: {**kind, **entry}}, bytes(8))


_DEEP = "[" * 100_000 + "]" * 100_000
_DEEP_LABEL = '{"tuple":[' * 2_000 + "]}" * 2_000
_KEYS = '{"method":"perkey","params":{"model":{"method":"arow","params":%s},"key":1,"most":3},"labels":[],"steps":%s}'
HOSTILE: dict[str, bytes] = {
    "metadata is a number": with_head({"__metadata__": 5}),
    "metadata is a list": with_head({"__metadata__": []}),
    "metadata is null": with_head({"__metadata__": None}),
    "an entry that is a number": with_head({"__metadata__": {"varifold": 1}}),
    "an entry that is no object": with_head({"__metadata__": {"varifold": "[1]"}}),
    "no format": with_digest({"header": {"method": "olvf"}}),
    "format is a text": with_digest({"format": "1", "header": {"method": "olvf"}}),
    "format is true": with_digest({"format": True, "header": {"method": "olvf"}}),
    "format 0": with_digest({"format": 0, "header": {"method": "olvf"}}),
    "format of 4,000 digits": with_digest('{"format":' + "9" * 4000 + "}"),
    "format of 5,000 digits": with_digest('{"format":' + "9" * 5000 + "}"),
    "no digest": with_head({"__metadata__": {"varifold": '{"format":1,"header":{"method":"olvf"}}'}}),
    "a digest of nothing": with_head(
        {"__metadata__": {"varifold": '{"sha256":"","format":1,"header":{"method":"olvf"}}'}}
    ),
    "no header": with_digest({"format": 1}),
    "a header that is a list": with_digest({"format": 1, "header": []}),
    "a method that is a number": with_description('{"method":5,"params":{},"labels":[]}'),
    "a method that is an object": with_description('{"method":{},"params":{},"labels":[]}'),
    "deep metadata": with_head(b'{"a":' + _DEEP.encode() + b"}"),
    "deep description": with_description('{"method":"olvf","params":{},"labels":' + _DEEP + "}"),
    "deep label of learners by key": with_description(
        (_KEYS % ("{}", "1")).replace('"labels":[]', f'"labels":[{_DEEP_LABEL}]')
    ),
    "endless steps": with_description(_KEYS % ("{}", "Infinity")),
    "parameters are a list": with_description(_KEYS % ("[]", "1")),
    "no arrays": with_description('{"method":"olvf","params":{},"labels":[]}'),
    "an array of an unknown type": with_array("a", dtype="BF16", shape=[4]),
    "an array of no type": with_array("a", dtype="C128"),
    "an array of a negative shape": with_array("a", shape=[-1, -1]),
    "an array of half a shape": with_array("a", shape=[0.5]),
    "an array of all memory": with_array("a", shape=[1 << 50]),
    "an array of more than all memory": with_array("a", shape=[1 << 40, 1 << 40]),
    "an array that ends after the file": with_array("a", shape=[9], data_offsets=[0, 72]),
    "an array that begins after its end": with_array("a", data_offsets=[8, 0]),
    "an array outside the file": with_array("a", data_offsets=[-8, 0]),
    "bytes of no array": with_array("a", shape=[0], data_offsets=[0, 0]),
    "an array of no bytes and all rows": with_array("step", shape=[1 << 62, 0], data_offsets=[0, 0]),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_rejected(data: bytes) -> None:
    with pytest.raises(ModelFileError, match=r"the data \(") as caught:
        varifold.from_bytes(data)
    assert len(str(caught.value)) < 1_000


def test_a_newer_format_is_reported(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FORMAT", 4)
    taught(varifold.OLVF()).save(saved)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"format 4.*upgrade"):
        varifold.load(saved)


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
    "seen before the first step": lambda h, a: a["space.seen"].fill(-1),
    "seen in the far future": lambda h, a: a["space.seen"].fill(1 << 50),
    "an empty step": lambda h, a: a.update({"step": a["step"][:0]}),
    "a label of no kind": lambda h, a: h["labels"].__setitem__(0, {"set": [1], "b": 2}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_content_that_does_not_fit_is_rejected(saved: Path, change: Any) -> None:
    rewritten(saved, change)
    with pytest.raises(ModelFileError):
        varifold.load(saved)


def test_loading_needs_the_right_class(saved: Path) -> None:
    with pytest.raises(ModelFileError, match="OLVF, not a AROW"):
        varifold.AROW.load(saved)
    assert isinstance(varifold.OLVF.load(saved), varifold.OLVF)


# ---------------------------------------------------------------- what load would reject, save rejects


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
def test_a_state_that_load_rejects_is_not_saved_and_the_good_file_stays(saved: Path, change: Any) -> None:
    good = saved.read_bytes()
    model: Any = varifold.load(saved)
    model._engine = Spoiled(model._engine, change)
    with pytest.raises(ModelFileError, match="this OLVF was not saved, because it could not be loaded again"):
        model.save(saved)
    with pytest.raises(ModelFileError, match="does not hold a whole 'olvf'"):
        varifold.from_bytes(model.to_bytes())  # only `save` loads what it encoded
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
