"""Warn about columns of texts whose cells are probably not categories: numbers, dates, sentences, identifiers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from varifold._engine.data.block import Block
from varifold.base.clock import dates_among
from varifold.base.frames import is_frame, open_frame
from varifold.base.number_texts import MOST, are_numbers, warn_of_numbers
from varifold.errors import VarifoldWarning

__all__ = ["FEWEST_DIFFERENT", "are_identifiers", "are_sentences", "warn_new_texts", "warn_texts"]

FEWEST_DIFFERENT = 100
"""Number of different values from which a column without a repetition is reported as identifier or count of rows."""
_FEWEST_SENTENCES = 20
"""Number of texts from which they are reported as sentences: a few categories may have long names."""
_ROWS = 500
"""Rows that are looked at."""
_CONVERT_FRAME = "convert the column to numbers (pandas.read_csv has decimal=',' and thousands='.'), or to categories"
_CONVERT_DICTS = "convert them, such as by float(text)"


def are_sentences(texts: Sequence[str]) -> bool:
    """Return whether texts are long and varied, and so to be split into words."""
    if len(texts) < 5 or 2 * len(set(texts)) <= len(texts):
        return False
    return sum(len(text.split()) for text in texts) >= 5 * len(texts)


def are_identifiers(texts: Sequence[str]) -> bool:
    """Return whether there are many texts and none occurs twice: they identify rows and take memory for each."""
    return len(texts) >= FEWEST_DIFFERENT and len(set(texts)) == len(texts)


def warn_texts(X: Any, known: Callable[[Any], bool]) -> None:
    """Warn about columns of a frame or of a list of dicts, except known ones; nothing if X is something else."""
    if is_frame(X):
        for name, texts in _of_frame(X, known):
            _warn(name, texts, _CONVERT_FRAME, ", or convert the column to categories to keep it")
    elif isinstance(X, list | tuple):
        for name, texts in _of_dicts(X, known):
            _warn(name, texts, _CONVERT_DICTS, "")


def warn_new_texts(block: Block, X: Any, known: Callable[[Any], bool]) -> None:
    """Warn about columns of texts of X, of which a block was made, if there are any that are not known."""
    columns = block.vocabulary.column_array()
    of_texts = np.unique(columns[columns != np.arange(len(columns))]).tolist()
    if not all(known(block.vocabulary.name_of(column)) for column in of_texts):
        warn_texts(X, known)


def _of_frame(X: Any, known: Callable[[Any], bool]) -> Iterator[tuple[Any, list[str]]]:
    import narwhals.stable.v1 as nw

    frame = open_frame(X)
    for name in frame.columns:
        series = frame.get_column(name)
        if series.dtype == nw.String and not known(name):
            yield name, [text for text in series.head(_ROWS).to_list() if isinstance(text, str) and text.strip()]


def _of_dicts(rows: Sequence[Any], known: Callable[[Any], bool]) -> Iterator[tuple[Any, list[str]]]:
    texts: dict[Any, list[str] | None] = {}
    for row in islice(rows, _ROWS):
        if not isinstance(row, Mapping):  # reported by who reads it
            return
        for name, value in row.items():
            if isinstance(value, str):
                if name not in texts:
                    texts[name] = None if known(name) else []
                found = texts[name]
                if found is not None and value.strip():
                    found.append(value)
    yield from ((name, found) for name, found in texts.items() if found)


def _warn(name: Any, texts: list[str], convert: str, keep: str) -> None:
    """Warn about one column: how its numbers are converted, and how it is kept as it is."""
    different = list(dict.fromkeys(texts))
    if are_numbers(different[:MOST]):
        warn_of_numbers(name, different[0], convert)
        return
    if dates := dates_among(texts):
        what = f"holds dates as texts, such as {dates[0]!r}, and each is"
        remedy = "replace them by numbers, such as hour, month or days since a date"
    elif len(texts) >= _FEWEST_SENTENCES and are_sentences(texts):
        what = f"holds texts of several words, such as {_short(texts[0])}, and each text is"
        remedy = "count their words, such as by CountVectorizer of scikit-learn (docs/with-scikit-learn.md)"
    elif are_identifiers(texts):
        what = f"has a different text in each of its first {len(texts):,} rows, such as {_short(texts[0])}, and each is"
        remedy = "leave the column out if it identifies the rows"
    else:
        return
    warnings.warn(f"column {name!r} {what} read as a separate category; {remedy}{keep}", VarifoldWarning, stacklevel=2)


def _short(text: str) -> str:
    return repr(text if len(text) <= 30 else f"{text[:30]}...")
