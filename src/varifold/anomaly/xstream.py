"""XStream: half-space chains over random projections."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from varifold.anomaly._xstream import XStreamModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Integer

__all__ = ["XStream"]


@declared
class XStream(VaryingDetector):
    """Half-space chains over random projections, for streams whose features evolve.

    Its cost does not depend on the number of features known. Choose it for very many features.

    Parameters
    ----------
    projections
        Size K of the sketch of an instance.
    chains
        Chains of the ensemble, M.
    depth
        Levels D of a chain.
    window
        Instances of which the counts are used; a new window begins after as many.
    seed
        Of projections and chains.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *Deviations from the paper.* Weights of features are drawn by slot instead of hashed names: each feature is in a
    third of the projections with a random sign. Values are standardised online. The cells of the first level are
    twice the deviation of a projection in the window before wide, instead of half the range in a first sample; in the
    first window they are 1 wide. The cells of a level are counted in one table of 256 entries instead of a count-min
    sketch. The score is the mean over chains of the logarithm of eq. 5, subtracted from its largest value.

    `explain_one` returns by how much the score falls without each feature, and the rest.

    *Cost.* O(projections x present + chains x depth). An explanation takes a score per feature; of
    instances of more than 500 features, only those with the largest values are explained.

    Examples
    --------
    >>> from varifold import XStream
    >>> model = XStream()
    >>> for step in range(600):
    ...     model.learn_one({"a": step * 37 % 100, "b": step * 61 % 90})
    >>> model.score_one({"a": 500.0, "b": -400.0}) > model.score_one({"a": 50.0, "b": 40.0})
    True

    References
    ----------
    E. Manzoor, H. Lamba, L. Akoglu. xStream: Outlier detection in feature-evolving data streams. KDD 2018.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "projections": Integer(1, 64),
        "chains": Integer(1, 1000),
        "depth": Integer(1, 60),
        "window": Integer(1, 10_000_000),
        "seed": Integer(0),
    }
    _cost = "O(projections x present + chains x depth)"

    projections: int = 50
    chains: int = 25
    depth: int = 10
    window: int = 250
    seed: int = 0
    scale: str = field(default="standard", init=False)
    clip: float = field(default=8.0, init=False)

    def _model(self) -> XStreamModel:
        return XStreamModel(self.projections, self.chains, self.depth, self.window, 256, self.seed)
