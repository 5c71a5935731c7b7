"""Engines around compiled models, for tests of a model without its learner."""

from __future__ import annotations

from typing import Any

from varifold._engine.engine import Engine
from varifold._engine.models.model import Model
from varifold._engine.targets.class_target import ClassTarget


def class_engine(model: Model, **params: Any) -> Engine:
    """Make an engine that learns labels with this model."""
    return Engine(model, ClassTarget(), **params)
