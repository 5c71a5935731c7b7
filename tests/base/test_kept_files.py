"""Model files of earlier builds load and go on as they did in the build that wrote them."""

from __future__ import annotations

import json

import pytest

import varifold
from tests.base.model_files import FOLDER, answers

KEPT = sorted(path.stem for path in FOLDER.glob("*.safetensors"))


@pytest.mark.parametrize("form", KEPT)
def test_an_earlier_file_goes_on(form: str) -> None:
    model = varifold.load(FOLDER / f"{form}.safetensors")
    expected = json.loads((FOLDER / f"{form}.json").read_text())
    found = answers(model)
    assert len(found) == len(expected) > 0
    for step, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12), step


def test_every_method_has_a_kept_file() -> None:
    assert set(varifold.models) <= set(KEPT), "write the missing ones with `python -m tests.base.model_files NAME`"
