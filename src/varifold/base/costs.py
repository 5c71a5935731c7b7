"""Objectives and costs of predictions: which values are accepted, and how they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from varifold._engine.names.vocabulary import plain_label
from varifold.base.params import LARGEST, SMALLEST, Real
from varifold.errors import LabelError, ParameterError

OBJECTIVES = ("accuracy", "balanced", "log_loss")
_BY_LABEL = Real(0, open_low=True)
_IN_MATRIX = Real()


class Costs:
    """Constraint: a mapping of labels to costs, or a cost matrix as a mapping of mappings."""

    def accepts(self, value: object) -> bool:
        """Return whether the value is such a mapping, with all costs in range."""
        if not isinstance(value, Mapping) or not value or not _are_labels(value):
            return False
        if not any(isinstance(cost, Mapping) for cost in value.values()):
            return all(_BY_LABEL.accepts(cost) for cost in value.values())
        return all(
            isinstance(row, Mapping) and _are_labels(row) and all(_IN_MATRIX.accepts(cost) for cost in row.values())
            for row in value.values()
        )

    def describe(self) -> str:
        """Describe the two accepted forms."""
        return (
            "a mapping {label: cost > 0}, or a matrix {true label: {predicted label: cost}}, of costs that are 0 or "
            f"from {SMALLEST:g} to {LARGEST:g} in size,"
        )


def _are_labels(mapping: Mapping[Any, Any]) -> bool:
    try:
        for label in mapping:
            plain_label(label, 1)
    except LabelError:
        return False
    return True


def plain_costs(costs: Mapping[Any, Any] | None) -> dict[Any, Any] | None:
    """Copy accepted costs to a new dict, with plain labels and floats."""
    if costs is None:
        return None
    return {
        plain_label(label, 1): plain_costs(cost) if isinstance(cost, Mapping) else float(cost)
        for label, cost in costs.items()
    }


def check_one_rule(owner: str, given: Mapping[str, bool]) -> None:
    """Reject more than one rule for choosing the label: objective, costs, threshold."""
    names = [name for name, is_given in given.items() if is_given]
    if len(names) > 1:
        raise ParameterError(
            f"{owner} got {' and '.join(repr(name) for name in names)}: each of them decides which label is predicted; "
            "give one of them"
        )
