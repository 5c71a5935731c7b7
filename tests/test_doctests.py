"""The examples of every module, run on the package as it is installed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import varifold

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted({"varifold", *(m.name for m in pkgutil.walk_packages(varifold.__path__, "varifold."))})


@pytest.mark.parametrize("name", [m for m in MODULES if not m.endswith("__main__")])
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


def test_methods_have_examples() -> None:
    classes = {**varifold.models, **varifold.detectors}
    bare = [name for name, cls in classes.items() if ">>>" not in (cls.__doc__ or "")]
    assert not bare
