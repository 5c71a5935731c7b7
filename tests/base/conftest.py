"""Model files for the tests of files."""

from __future__ import annotations

from pathlib import Path

import pytest

import varifold
from tests.base.saved_models import taught


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The file of a learner that has learned a little."""
    path = tmp_path / "model"
    taught(varifold.OLVF(B=0.5)).save(path)
    return path
