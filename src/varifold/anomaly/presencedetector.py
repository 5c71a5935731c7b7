"""PresenceDetector: unusual sets of columns."""

from __future__ import annotations

from typing import ClassVar

from varifold.anomaly._presence import PresenceDetectorModel
from varifold.base.declared import declared
from varifold.base.detector import VaryingDetector
from varifold.base.params import Constraint, Real

__all__ = ["PresenceDetector"]


@declared
class PresenceDetector(VaryingDetector):
    """Surprise of which columns are present and which are absent; values are not used.

    Choose it to notice that a sensor fell silent or that a field appears which is usually empty. A silence is
    surprising when it begins and becomes usual while it lasts.

    Parameters
    ----------
    forget
        Rate at which the shares of presence follow, in (0, 1]: of .01, a silence is usual after some hundred
        instances.
    max_features, evict, rate
        See `VaryingDetector`.

    Notes
    -----
    *No paper.* A column has a share of presence since it was first seen, within .0001 and .9999. The score sums minus
    the logarithms of the probabilities of what is present and absent, less the mean of that sum, over the root of 1
    plus its variance, as if columns were independent. `explain_one` names each column as present or absent.

    *Cost.* O(known columns).

    Examples
    --------
    >>> from varifold import PresenceDetector
    >>> model = PresenceDetector()
    >>> for step in range(300):
    ...     model.learn_one({"heat": 1.0, "load": 2.0} if step % 2 else {"heat": 1.0})
    >>> next(iter(model.explain_one({"load": 2.0})))
    'heat (absent)'

    """

    _parameters: ClassVar[dict[str, Constraint]] = {"forget": Real(0, 1, open_low=True)}
    _cost = "O(known)"
    _uses_absence = True
    _uses_values = False

    forget: float = 0.01

    def _model(self) -> PresenceDetectorModel:
        return PresenceDetectorModel(self.forget)
