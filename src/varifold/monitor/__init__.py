"""Monitor the features of a stream: births, silences, returns, drift, unit changes, stuck sensors and renames.

A `Monitor` needs no labels and no learner. It imports `base` and the layers below, no learner and no evaluation.
"""

from varifold.monitor.events import Event
from varifold.monitor.monitor import Feature, Monitor
from varifold.monitor.renames import Rename

__all__ = ["Event", "Feature", "Monitor", "Rename"]
