"""Read text formats with one row per line: JSON lines, svmlight, ARFF."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import Any

from varifold.errors import DataError
from varifold.streams.readers._numbers import label_of, parse_number
from varifold.streams.readers.context import NAME_ENCODING, Column, Context
from varifold.streams.readers.records import Record, Row, batches_of_rows, rows_of
from varifold.streams.readers.sources import Source
from varifold.streams.stream import Batch

__all__ = ["read_arff", "read_jsonl", "read_svmlight"]


def _texts(context: Context, source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the lines that are not blank."""
    for line, data in source.lines(context.max_line):
        if data is None:
            context.failed(source.name, line, None, context.too_long())
            continue
        try:
            text = data.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            byte = data[error.start]
            context.failed(source.name, line, None, f"byte 0x{byte:02x} is not UTF-8; {NAME_ENCODING}")
            continue
        if text:
            yield line, text


def _short(text: str) -> str:
    """Quote a text for a message."""
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def _index(text: str) -> int | None:
    """Parse a whole number >= 0 of at most 18 digits; return None for other texts."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def read_jsonl(context: Context, source: Source) -> Iterator[Batch]:
    """Read JSON lines: one object per line."""
    context.undeclared = True
    return batches_of_rows(context, source.name, rows_of(context, source.name, _json_records(context, source)))


def _json_records(context: Context, source: Source) -> Iterator[Record]:
    for line, text in _texts(context, source):
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            context.failed(source.name, line, None, f"not JSON at character {error.pos + 1}: {error.msg}")
        except RecursionError:
            context.failed(source.name, line, None, "objects and lists are nested too deeply")
        except ValueError:
            # Python reads whole numbers of up to 4,300 digits
            context.failed(source.name, line, None, "a number has thousands of digits; write it with an exponent")
        else:
            if isinstance(record, dict):
                yield line, record
            else:
                kind = type(record).__name__
                context.failed(source.name, line, None, f"a {kind} where an object {{...}} was expected")


def read_svmlight(context: Context, source: Source) -> Iterator[Batch]:
    """Read svmlight lines ``label index:value ...``; the features are the indices as int, ``qid`` is the id."""
    if context.target is None:
        context.target = "label"
    context.undeclared = True
    context.names_seen.add(context.target)
    return batches_of_rows(context, source.name, _svm_rows(context, source))


def _svm_rows(context: Context, source: Source) -> Iterator[Row]:
    known: dict[int, float] = {}
    for line, text in _texts(context, source):
        tokens = text.partition("#")[0].split()
        if not tokens:
            continue
        try:
            row = _svm_row(line, tokens)
        except DataError as error:
            context.failed(source.name, line, None, str(error))
            continue
        if context.omitted == "zero":
            known.update(dict.fromkeys(row.x, 0.0))
            row.x = {**known, **row.x}
        yield row


def _svm_row(line: int, tokens: list[str]) -> Row:
    row = Row(line, {}, label_of(tokens[0].encode()))
    for token in tokens[1:]:
        name, colon, text = token.partition(":")
        if name == "qid":
            row.id = text
            continue
        value, index = parse_number(text), _index(name)
        if not colon or value is None or index is None:
            raise DataError(f"{_short(token)} is not index:value")
        if index in row.x:
            raise DataError(f"the index {index} is given twice")
        row.x[index] = value
    return row


def read_arff(context: Context, source: Source) -> Iterator[Batch]:
    """Read a dense or sparse ARFF file."""
    lines = ((line, text) for line, text in _texts(context, source) if not text.startswith("%"))
    names, first = _declared(context, source, lines)
    context.require(names, source.name)
    records = _arff_records(context, source, lines, names, first)
    return batches_of_rows(context, source.name, rows_of(context, source.name, records))


def _declared(context: Context, source: Source, lines: Iterator[tuple[int, str]]) -> tuple[list[str], list[Any]]:
    """Return the names of the attributes and the values of cells that sparse rows omit."""
    names: list[str] = []
    first: list[Any] = []
    for line, text in lines:
        word = text.split(None, 1)[0].lower()
        if word == "@data":
            return names, first
        if word != "@attribute":
            continue
        found = re.match(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.+)$", text, re.IGNORECASE)
        if found is None:
            raise DataError(f"{source.name}, line {line}: not '@attribute name type': {text[:60]!r}")
        name, kind = found[1].strip("'\""), found[2].strip()
        names.append(name)
        first.append(_first_level(kind, f"{source.name}, line {line}") if kind.startswith("{") else 0.0)
        if name not in context.special() and kind.lower() != "string":
            given = context.types.get(name)
            numeric = kind.split()[0].lower() in ("numeric", "real", "integer")
            context.columns.setdefault(name, Column(name, given or ("numeric" if numeric else "category"), bool(given)))
    raise DataError(f"{source.name} has no @data line; it is not an ARFF file or it is cut off")


def _first_level(kind: str, where: str) -> str | float:
    """Return the first level of a nominal attribute, which sparse rows omit."""
    try:
        levels = _cells(kind.strip("{} "))
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return levels[0] if levels else 0.0


def _arff_records(
    context: Context, source: Source, lines: Iterator[tuple[int, str]], names: list[str], first: list[Any]
) -> Iterator[Record]:
    for line, text in lines:
        try:
            record = _sparse(text, names, first, context.omitted) if text.startswith("{") else _dense(text, names)
        except DataError as error:
            context.failed(source.name, line, None, str(error))
        else:
            yield line, record


def _cells(text: str) -> list[str]:
    quote = "'" if text.count("'") >= text.count('"') else '"'
    try:
        return next(csv.reader([text], quotechar=quote, skipinitialspace=True, escapechar="\\"), [])
    except csv.Error as error:
        raise DataError(f"the cells of {_short(text)} cannot be separated: {error}") from error


def _dense(text: str, names: list[str]) -> dict[str, Any]:
    cells = [cell.strip() for cell in _cells(text)]
    if len(cells) != len(names):
        raise DataError(f"{len(cells)} cells where {len(names)} attributes are declared")
    return dict(zip(names, cells, strict=True))


def _sparse(text: str, names: list[str], first: list[Any], omitted: str) -> dict[str, Any]:
    record: dict[str, Any] = dict(zip(names, first, strict=True)) if omitted == "zero" else {}
    for cell in _cells(text.strip("{} ")):
        position, _, value = cell.strip().partition(" ")
        index = _index(position)
        if index is None or index >= len(names):
            raise DataError(f"{_short(cell)} is not 'index value' with an index below {len(names)}")
        record[names[index]] = value.strip().strip("'\"")
    return record
