"""The registry: command-line name -> learner class, imported when asked for.

Checks, command line, documentation and benchmarks take their list of methods from here.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from varifold.base.nearest import nearest
from varifold.errors import UnknownNameError

if TYPE_CHECKING:
    from varifold.base.classifier import VaryingClassifier

_WHERE: dict[str, str] = {
    "additive": "varifold.linear.additive:Additive",
    "auto": "varifold.auto.classifier:AutoClassifier",
    "arow": "varifold.linear.arow:AROW",
    "fobos": "varifold.linear.fobos:FOBOS",
    "ftrladp": "varifold.linear.ftrladp:FTRLADP",
    "ftrlproximal": "varifold.linear.ftrlproximal:FTRLProximal",
    "gaussiannb": "varifold.naive_bayes.gaussiannb:GaussianNB",
    "nb3": "varifold.naive_bayes.nb3:NB3",
    "ocds": "varifold.linear.ocds:OCDS",
    "ogd": "varifold.linear.ogd:OGD",
    "neighbours": "varifold.neighbours.neighbours:Neighbours",
    "olids": "varifold.linear.olids:OLIDS",
    "olsf": "varifold.linear.olsf:OLSF",
    "olvf": "varifold.linear.olvf:OLVF",
    "orf3v": "varifold.forest.orf3v:ORF3V",
    "ovfiv": "varifold.variation.ovfiv:OVFIV",
    "ovfm": "varifold.copula.ovfm:OVFM",
    "pa": "varifold.linear.pa:PA",
    "variation": "varifold.variation.variation:Variation",
    "cwfe": "varifold.evolving.cwfe:CWFE",
    "ncw": "varifold.evolving.cwfe:NCW",
    "rcwf": "varifold.evolving.cwfe:RCWf",
    "rcwu": "varifold.evolving.cwfe:RCWu",
    "fesl": "varifold.evolving.fesl:FESL",
    "nogd": "varifold.evolving.fesl:NOGD",
    "rogdf": "varifold.evolving.fesl:ROGDf",
    "rogdu": "varifold.evolving.fesl:ROGDu",
    "npad": "varifold.evolving.pafe:NPAd",
    "pafe": "varifold.evolving.pafe:PAFE",
    "rpaf": "varifold.evolving.pafe:RPAf",
    "rpau": "varifold.evolving.pafe:RPAu",
}


class Registry(Mapping[str, "type[VaryingClassifier]"]):
    """Read-only mapping of every registered learner; ``register`` adds a third party's."""

    def __init__(self, where: dict[str, str]) -> None:
        self._where = where

    def __getitem__(self, name: str) -> type[VaryingClassifier]:
        if name not in self._where:
            raise UnknownNameError(
                f"there is no model {name!r}{nearest(name, self._where)} (`varifold models` lists all)"
            )
        module, _, attribute = self._where[name].partition(":")
        found: type[VaryingClassifier] = getattr(importlib.import_module(module), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._where))

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, name: object) -> bool:
        return name in self._where

    def register(self, name: str, cls: type[VaryingClassifier]) -> None:
        """Make a learner known under a command-line name (lower case, no hyphens)."""
        if name in self._where and self._where[name] != f"{cls.__module__}:{cls.__qualname__}":
            raise UnknownNameError(f"the name {name!r} is taken by {self._where[name]}")
        self._where[name] = f"{cls.__module__}:{cls.__qualname__}"

    def name_of(self, cls: type) -> str | None:
        """The command-line name of a class, or None when it is not registered."""
        where = f"{cls.__module__}:{cls.__qualname__}"
        return next((name for name, w in self._where.items() if w == where), None)

    def class_names(self) -> dict[str, str]:
        """Class name -> command-line name, without importing anything."""
        return {w.rpartition(":")[2]: name for name, w in self._where.items()}


models = Registry(_WHERE)
