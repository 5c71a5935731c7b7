"""Kept model files load, and continue as they did in the build that wrote them."""

from __future__ import annotations

import json

import pytest

from tests.base.kept_files import FOLDER, KINDS, make, predictions

KEPT = sorted(path.stem for path in FOLDER.glob("*.safetensors"))


@pytest.mark.parametrize("kind", KEPT)
def test_a_kept_file_continues(kind: str) -> None:
    model = type(make(kind)).load(FOLDER / f"{kind}.safetensors")
    expected = json.loads((FOLDER / f"{kind}.json").read_text())
    predicted = predictions(kind, model)
    assert len(predicted) == len(expected) > 0
    for step, (ours, theirs) in enumerate(zip(predicted, expected, strict=True)):
        assert ours.keys() == theirs.keys(), step
        for label, value in theirs.items():  # an imputed value may be a string
            assert ours[label] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-9, abs=1e-12)), step


def test_every_method_has_a_kept_file() -> None:
    assert KEPT == KINDS, "write the missing ones with `python -m tests.base.kept_files NAME ...`"
