"""Real data sets by name, as the papers use them."""

from varifold.datasets.load import Dataset, load
from varifold.datasets.registry import Entry, find, names

__all__ = ["Dataset", "Entry", "find", "load", "names"]
