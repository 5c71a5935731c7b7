"""Streams: how instances come in, and how a fixed data set is made to vary."""

from varifold.streams.prepare import Prepared, prepare
from varifold.streams.readers.context import Chunk, Column
from varifold.streams.scenarios.columns import zscore
from varifold.streams.scenarios.registry import scenarios
from varifold.streams.stream import Stream, read
from varifold.streams.vary import Varied, vary

__all__ = ["Chunk", "Column", "Prepared", "Stream", "Varied", "prepare", "read", "scenarios", "vary", "zscore"]
