"""Model files: read for ever once written, equal to the bytes in memory, whatever the names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import varifold
from tests.base.saved_models import rewritten, taught
from varifold.base import files
from varifold.errors import DataError, ModelFileError

FORMAT_1 = Path(__file__).parents[1] / "data" / "format1_olvf.safetensors"


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
