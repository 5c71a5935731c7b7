"""Base class of the two default learners: a mixture of the experts of a table, its files and its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from varifold.auto.experts import Expert
from varifold.auto.report import changes
from varifold.base.blocks import to_block
from varifold.base.learner import VaryingLearner


class MixtureLearner(VaryingLearner):
    """A learner whose model is a mixture; it supplies `_table` and `_model`."""

    _window: int
    """Largest number of instances in the window forest."""
    _names: list[str] | None = None
    """Experts of this learner, if not all of the table."""

    def _table(self) -> tuple[Expert, ...]:
        """List the experts for these parameters."""
        raise NotImplementedError(f"{type(self).__name__} must define _table()")

    def _experts(self) -> list[Expert]:
        return [expert for expert in self._table() if self._names is None or expert.name in self._names]

    def _fill_early(self) -> None:
        """Use a window that is full within the stream of a check; only before anything is learned."""
        self._window = 200
        self._engine = self._make_engine()

    # ------------------------------------------------------------------ files

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "experts": [expert.name for expert in self._experts()]}

    def _apply_header(self, header: Mapping[str, Any]) -> None:
        """Choose the experts that the file holds."""
        super()._apply_header(header)
        self._names = header.get("experts")
        if self._names != [expert.name for expert in self._experts()]:
            raise ValueError(f"the file holds the experts {self._names!r}; this version does not have all of them")
        self._engine = self._make_engine()

    # ------------------------------------------------------------------ report

    def _summary(self, most: int, predicted: Any, rise: str) -> dict[str, Any]:
        """Return the fields that the reports of both learners have; `rise` describes a rise of the error."""
        model: Any = self._engine.model
        features = self.features
        steps, weights = model.weight_history()
        # a large weight of a feature that is rarely present moves few predictions
        average = {name: feature.weight * feature.share(self.steps) for name, feature in features.items()}
        top = sorted(average.items(), key=lambda item: -item[1])[:most]
        unlearned = None if predicted is None else to_block(predicted)
        return {
            "steps": self.steps,
            "experts": model.expert_weights(),
            "history_steps": steps,
            "history_weights": weights,
            "features": dict(top),
            "changes": changes(self.steps, features, rise, self.unit_changes, unlearned),
            "notes": tuple(model.notes()),
        }
