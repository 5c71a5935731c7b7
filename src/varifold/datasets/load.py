"""`load`: load a registered data set as a block."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from varifold._engine.data.block import Block
from varifold._engine.names.vocabulary import Labels, encode_labels
from varifold.base.blocks import to_block
from varifold.datasets import build, files, parse
from varifold.datasets.fetch import by_hand, fetch
from varifold.datasets.own import is_own, own_data
from varifold.datasets.registry import Entry
from varifold.datasets.registry import find as find_registered
from varifold.datasets.synthetic import synthetic
from varifold.errors import DataError

__all__ = ["Dataset", "load"]


@dataclass(frozen=True)
class Dataset:
    """A data set in memory: all rows in the order of the file, and its registry entry.

    Two-class sets have the positive label second in ``block.labels``.
    """

    entry: Entry
    block: Block
    times: list[str] | None = None
    """Times of the rows of a natural stream, if its file has any."""

    @property
    def ordered(self) -> bool:
        """Return whether the rows are in a natural order, which is kept unless a permutation is requested."""
        return bool(self.entry.order)

    @property
    def delay(self) -> int:
        """Return the number of rows after which the label of a row is known."""
        return self.entry.delay

    @property
    def name(self) -> str:
        """Return its name in the registry."""
        return self.entry.name

    @property
    def title(self) -> str:
        """Return a short description."""
        return self.entry.title

    @property
    def columns(self) -> int:
        """Return the number of columns; a nominal one counts once."""
        return self.entry.features

    @property
    def positive(self) -> object:
        """Return the label whose F-measure is computed; None with more than two classes."""
        values = self.block.labels.values
        return values[1] if len(values) == 2 else None

    @property
    def conversion(self) -> str | None:
        """Return the order of column types that the scenario ``mixed`` uses for it."""
        return self.entry.mixed


def load(name: str) -> Dataset:
    """Load a data set by name from the directory VARIFOLD_DATA, the cache, or its original publisher.

    Every file is checked against the registry's sha256. ``package.module:function`` is your own data set: the
    function returns a Block, or X and y; installed packages add theirs by entry points of ``varifold.datasets``.

    Examples
    --------
    >>> from varifold import datasets
    >>> synthetic = datasets.load("synthetic")
    >>> len(synthetic.block), synthetic.columns
    (2000, 18)

    """
    if is_own(name):
        own = own_data(name)
        return Dataset(own.entry, own.block)
    entry = find_registered(name)
    if entry.format == "natural":
        return _natural(entry)
    return Dataset(entry, _read(entry))


def _natural(entry: Entry) -> Dataset:
    from varifold.datasets.natural import natural

    file = entry.files[0]
    path = files.locate(file)
    if path is None:
        raise DataError(by_hand(entry))
    files.content(entry, file, path)
    return Dataset(entry, *natural(entry, path))


def _read(entry: Entry) -> Block:
    if entry.format == "synthetic":
        return synthetic(entry.rows)
    located = [files.locate(file) for file in entry.files]
    if entry.bundled and None in located:
        bundled = _bundled(entry)
        if bundled is not None:
            return bundled
    paths = fetch(entry.name) if not located or None in located else [path for path in located if path is not None]
    contents = [files.content(entry, file, path) for file, path in zip(entry.files, paths, strict=True)]
    if entry.format == "matlab":
        return _matlab(paths[0])
    if entry.format == "npz":
        return _npz(entry, contents[0])
    texts = [data.decode("utf-8") for data in contents]
    if entry.format == "libsvm":
        return build.from_sparse(entry, parse.sparse(texts))
    if entry.format == "words":
        return build.from_words(entry, parse.sparse(texts[:1]), texts[1].splitlines())
    readers = {"table": parse.table, "arff": parse.arff, "letters": parse.letters}
    return build.from_table(entry, readers[entry.format](entry, texts))


def _bundled(entry: Entry) -> Block | None:
    """Load the copy in scikit-learn, if that is installed."""
    try:
        from sklearn import datasets as sklearn_datasets
    except ImportError:
        return None
    data = getattr(sklearn_datasets, entry.bundled or "")()
    names = [name for name in entry.columns if name != entry.target and name not in entry.ignore]
    label = {"load_breast_cancer": ("M", "B"), "load_wine": (1, 2, 3)}[entry.bundled or ""]
    block = to_block(data.data, names=names)
    return build.labelled(entry, block, [label[k] for k in data.target])


def _npz(entry: Entry, content: bytes) -> Block:
    with np.load(io.BytesIO(content)) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(int).tolist()
    return build.labelled(entry, to_block(X, names=[f"F{j}" for j in range(1, X.shape[1] + 1)]), y)


def _matlab(path: Path) -> Block:
    from scipy.io import loadmat

    table = np.asarray(loadmat(str(path))["data"], dtype=np.float64)
    labels = Labels([-1, 1])
    names = [f"F{j}" for j in range(1, table.shape[1])]
    block = to_block(table[:, 1:], names=names)
    codes = encode_labels(table[:, 0].astype(int), labels, len(table))
    return Block(block.vocabulary, block.indptr, block.indices, block.values, codes, labels)
