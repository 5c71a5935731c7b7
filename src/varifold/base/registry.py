"""Registry of learners: command-line name -> class, imported on first use.

Checks, command line, documentation and benchmarks get their list of methods here. An installed package adds its
own learners by entry points of the group ``varifold.models``.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from varifold.base.nearest import nearest
from varifold.base.plugins import imported
from varifold.errors import EntryPointError, UnknownNameError, VarifoldWarning

if TYPE_CHECKING:
    from varifold.base.detector import VaryingDetector
    from varifold.base.estimator import Estimator
    from varifold.base.learner import VaryingLearner

T = TypeVar("T")
GROUP = "varifold.models"
"""Group of entry points, ``name = "package.module:Class"``, that register third-party learners."""

_WHERE: dict[str, str] = {
    "additive": "varifold.linear.additive:Additive",
    "additiveregressor": "varifold.linear.additiveregressor:AdditiveRegressor",
    "auto": "varifold.auto.classifier:AutoClassifier",
    "autoregressor": "varifold.auto.regressor:AutoRegressor",
    "arow": "varifold.linear.arow:AROW",
    "arowregressor": "varifold.linear.arowregressor:AROWRegressor",
    "copularegressor": "varifold.copula.copularegressor:CopulaRegressor",
    "dynfo": "varifold.forest.dynfo:DynFo",
    "fae": "varifold.naive_bayes.fae:FAE",
    "fobos": "varifold.linear.fobos:FOBOS",
    "ftrladp": "varifold.linear.ftrladp:FTRLADP",
    "ftrlproximal": "varifold.linear.ftrlproximal:FTRLProximal",
    "gaussiannb": "varifold.naive_bayes.gaussiannb:GaussianNB",
    "meanregressor": "varifold.linear.meanregressor:MeanRegressor",
    "nb3": "varifold.naive_bayes.nb3:NB3",
    "ocds": "varifold.linear.ocds:OCDS",
    "ogd": "varifold.linear.ogd:OGD",
    "neighbours": "varifold.neighbours.neighbours:Neighbours",
    "neighboursregressor": "varifold.neighbours.neighboursregressor:NeighboursRegressor",
    "olids": "varifold.linear.olids:OLIDS",
    "olsf": "varifold.linear.olsf:OLSF",
    "olvf": "varifold.linear.olvf:OLVF",
    "olvfregressor": "varifold.linear.olvfregressor:OLVFRegressor",
    "orf3v": "varifold.forest.orf3v:ORF3V",
    "ovfiv": "varifold.variation.ovfiv:OVFIV",
    "ovfm": "varifold.copula.ovfm:OVFM",
    "pa": "varifold.linear.pa:PA",
    "variation": "varifold.variation.variation:Variation",
    "windowforest": "varifold.forest.windowforest:WindowForest",
    "windowforestregressor": "varifold.forest.windowforestregressor:WindowForestRegressor",
    "cwfe": "varifold.evolving.cwfe:CWFE",
    "fesl": "varifold.evolving.fesl:FESL",
    "feslregressor": "varifold.evolving.feslregressor:FESLRegressor",
    "pafe": "varifold.evolving.pafe:PAFE",
}


_DETECTORS: dict[str, str] = {
    "autodetector": "varifold.anomaly.autodetector:AutoDetector",
    "copuladetector": "varifold.anomaly.copuladetector:CopulaDetector",
    "halfspacetrees": "varifold.anomaly.halfspacetrees:HalfSpaceTrees",
    "isolationdetector": "varifold.anomaly.isolationdetector:IsolationDetector",
    "loda": "varifold.anomaly.loda:LODA",
    "neighboursdetector": "varifold.anomaly.neighboursdetector:NeighboursDetector",
    "presencedetector": "varifold.anomaly.presencedetector:PresenceDetector",
    "taildetector": "varifold.anomaly.taildetector:TailDetector",
    "xstream": "varifold.anomaly.xstream:XStream",
}
_TRANSFORMERS: dict[str, str] = {"copula-imputer": "varifold.copula.imputer:CopulaImputer"}
_COMPOSITES: dict[str, str] = {
    "perkey": "varifold.ensemble.per_key:PerKey",
    "perkeydetector": "varifold.ensemble.per_key:PerKeyDetector",
    "perkeyregressor": "varifold.ensemble.per_key:PerKeyRegressor",
    "vote": "varifold.ensemble.vote:Vote",
    "votedetector": "varifold.ensemble.vote_detector:VoteDetector",
}
"""Learners made of learners, by their names in model files."""


class Registry(Mapping[str, type[T]]):
    """Read-only mapping of every registered class; ``register`` adds one.

    Parameters
    ----------
    where
        Name -> ``package.module:Class``.
    group
        Group of entry points that add classes. They are read when a name is not found, or when all are listed.

    """

    def __init__(self, where: dict[str, str], group: str | None = None) -> None:
        self._where = where
        self._group = group
        self._packages: dict[str, str] = {}  # name -> package of its entry point

    def __getitem__(self, name: str) -> type[T]:
        if not isinstance(name, str):
            raise UnknownNameError(f"a model's name is a str. Got {name!r} instead.")
        if name not in self:
            raise UnknownNameError(f"there is no model {name!r}{nearest(name, self)} (`varifold models` lists all)")
        if name in self._packages:
            return self._from_entry_point(name)
        module, _, attribute = self._where[name].partition(":")
        cls: type[T] = getattr(importlib.import_module(module), attribute)
        return cls

    def __iter__(self) -> Iterator[str]:
        self._read_entry_points()
        return iter(sorted(self._where))

    def __len__(self) -> int:
        self._read_entry_points()
        return len(self._where)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if name not in self._where:
            self._read_entry_points()
        return name in self._where

    def register(self, name: str, cls: type[T]) -> None:
        """Register a class under a command-line name (lower case, no hyphens)."""
        if name in self and self._where[name] != _place(cls):
            raise UnknownNameError(f"the name {name!r} is taken by {self._where[name]}")
        self._where[name] = _place(cls)

    def name_of(self, cls: type) -> str | None:
        """Return the command-line name of a class, or None if it is not registered."""
        place = _place(cls)
        if place not in self._where.values():
            self._read_entry_points()
        return next((name for name, where in self._where.items() if where == place), None)

    def class_names(self) -> dict[str, str]:
        """Map class names to command-line names, without importing anything and without entry points."""
        return {w.rpartition(":")[2]: name for name, w in self._where.items() if name not in self._packages}

    def _read_entry_points(self) -> None:
        if self._group is None:
            return
        from importlib.metadata import entry_points  # takes milliseconds: only when needed

        group, self._group = self._group, None
        for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
            package = point.dist.name if point.dist is not None else "an unknown package"
            if self._where.setdefault(point.name, point.value) == point.value:
                self._packages[point.name] = package
            else:
                warnings.warn(
                    f"the model {point.name!r} of {package} is left out: the name belongs to {self._where[point.name]}",
                    VarifoldWarning,
                    stacklevel=3,
                )

    def _from_entry_point(self, name: str) -> type[T]:
        """Import a third-party class; errors name the package that it came from."""
        where, package = self._where[name], self._packages[name]
        cls: Any = imported(where, f"the model {name!r}", package)
        if not (isinstance(cls, type) and hasattr(cls, "learn_one") and hasattr(cls, "predict_one")):
            raise EntryPointError(
                f"the model {name!r} ({where}) of {package} is no class with learn_one and predict_one"
            )
        return cls


def _place(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


models: Registry[VaryingLearner] = Registry(_WHERE, GROUP)
detectors: Registry[VaryingDetector] = Registry(_DETECTORS)
transformers: Registry[Estimator] = Registry(_TRANSFORMERS)
composites: Registry[Any] = Registry(_COMPOSITES)
