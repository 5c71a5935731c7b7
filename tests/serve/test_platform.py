"""The server says which systems it is for."""

import importlib
import sys

import pytest

import varifold.serve.core
from varifold.errors import MissingExtraError


def test_windows_is_told_what_to_use(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(MissingExtraError, match="need Linux or macOS"):
        importlib.reload(varifold.serve.core)
    monkeypatch.undo()
    importlib.reload(varifold.serve.core)
