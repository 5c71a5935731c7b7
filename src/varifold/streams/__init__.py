"""Streams: how instances come in, and how a fixed data set is made to vary."""

from varifold.streams.columns import zscore
from varifold.streams.context import Chunk, Column
from varifold.streams.prepare import Prepared, prepare
from varifold.streams.read import Stream, read
from varifold.streams.scenarios import scenarios
from varifold.streams.vary import Varied, vary

__all__ = ["Chunk", "Column", "Prepared", "Stream", "Varied", "prepare", "read", "scenarios", "vary", "zscore"]
