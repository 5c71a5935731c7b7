"""Real data sets by name, as the papers use them: registry, download, checksums, parsing.

It imports `streams` (and is imported by it), `base` and the layers below.
"""

from varifold.datasets.export import export
from varifold.datasets.fetch import fetch
from varifold.datasets.files import where
from varifold.datasets.load import Dataset, load
from varifold.datasets.names import find, names
from varifold.datasets.registry import Entry

__all__ = ["Dataset", "Entry", "export", "fetch", "find", "load", "names", "where"]
