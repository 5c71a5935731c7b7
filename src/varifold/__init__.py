"""Learn, one instance at a time, from streams whose features appear and vanish.

>>> import varifold
>>> model = varifold.OLVF()
>>> model.learn_one({"pressure": 1.2, "valve": "open"}, "ok")
>>> model.predict_one({"pressure": 1.1})
'ok'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from varifold import errors
from varifold.base import Block, VaryingClassifier, Vocabulary, load, models, to_block
from varifold.base.nearest import nearest

__version__ = "0.1.0"
__all__ = ["Block", "VaryingClassifier", "Vocabulary", "__version__", "errors", "load", "models", "to_block"]

if TYPE_CHECKING:
    import varifold.checks as checks
    import varifold.datasets as datasets
    import varifold.evaluate as evaluate
    import varifold.streams as streams

_MODULES = ("checks", "datasets", "evaluate", "streams")


def __getattr__(name: str) -> Any:
    """Learner classes and the larger modules, imported when first used."""
    if name in _MODULES:
        return importlib.import_module(f"varifold.{name}")
    registered = models.class_names().get(name)
    if registered is not None:
        return models[registered]
    raise AttributeError(
        f"module 'varifold' has no attribute {name!r}{nearest(name, [*models.class_names(), *_MODULES])}"
    )


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *models.class_names()])
