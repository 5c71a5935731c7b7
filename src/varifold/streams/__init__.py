"""Streams: read instances (`readers`) and make a fixed data set vary (`scenarios`).

It imports `datasets` (and is imported by it), `base` and the layers below, but no learner and no evaluation.
"""

from varifold.streams.prepare import Prepared, prepare
from varifold.streams.readers.context import Column
from varifold.streams.reading import ReadStream, read
from varifold.streams.scenarios.columns import zscore
from varifold.streams.scenarios.registry import scenarios
from varifold.streams.stream import Batch, Stream
from varifold.streams.vary import Varied, vary

__all__ = [
    "Batch",
    "Column",
    "Prepared",
    "ReadStream",
    "Stream",
    "Varied",
    "prepare",
    "read",
    "scenarios",
    "vary",
    "zscore",
]
