"""Streams: how instances come in, and how a fixed data set is made to vary."""

from varifold.streams.columns import zscore
from varifold.streams.prepare import Prepared, prepare
from varifold.streams.scenarios import scenarios

__all__ = ["Prepared", "prepare", "scenarios", "zscore"]
