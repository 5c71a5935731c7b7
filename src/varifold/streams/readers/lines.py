"""Text formats with a row a line: JSON lines, svmlight, ARFF."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import Any

from varifold.errors import DataError
from varifold.streams.readers._numbers import label_of, parse_number
from varifold.streams.readers.context import Chunk, Column, Context
from varifold.streams.readers.rows import Row, gathered, split_record
from varifold.streams.readers.sources import Source

__all__ = ["read_arff", "read_jsonl", "read_svmlight"]


def _texts(context: Context, source: Source) -> Iterator[tuple[int, str]]:
    """(line number, text) of the lines that hold something."""
    for line, data in enumerate(source.lines(), 1):
        try:
            text = data.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            byte = data[error.start]
            context.failed(source.name, line, None, f"byte 0x{byte:02x} is not UTF-8; name the encoding")
            continue
        if text:
            yield line, text


def read_jsonl(context: Context, source: Source) -> Iterator[Chunk]:
    """A JSON object a line."""
    context.loose = True
    return gathered(context, source.name, _json_rows(context, source))


def _json_rows(context: Context, source: Source) -> Iterator[Row]:
    for line, text in _texts(context, source):
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            context.failed(source.name, line, None, f"not JSON at character {error.pos + 1}: {error.msg}")
            continue
        if not isinstance(record, dict):
            context.failed(source.name, line, None, f"a {type(record).__name__} where an object {{...}} was expected")
            continue
        yield split_record(context, line, record)


def read_svmlight(context: Context, source: Source) -> Iterator[Chunk]:
    """``label index:value ...`` a line; features are the indices, as int. ``qid`` is the id."""
    if context.target is None:
        context.target = "label"
    context.loose = True
    context.met.add(context.target)
    return gathered(context, source.name, _svm_rows(context, source))


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
        index, colon, text = token.partition(":")
        if index == "qid":
            row.id = text
            continue
        value = parse_number(text.encode())
        if not colon or value is None or not index.isdigit():
            raise DataError(f"{token!r} is not index:value")
        if int(index) in row.x:
            raise DataError(f"the index {index} is given twice")
        row.x[int(index)] = value
    return row


def read_arff(context: Context, source: Source) -> Iterator[Chunk]:
    """An ARFF file, dense or sparse."""
    lines = ((line, text) for line, text in _texts(context, source) if not text.startswith("%"))
    names, first = _declared(context, source, lines)
    context.require(names, source.name)
    return gathered(context, source.name, _arff_rows(context, source, lines, names, first))


def _declared(context: Context, source: Source, lines: Iterator[tuple[int, str]]) -> tuple[list[str], list[Any]]:
    """Attribute names, and what an omitted cell of a sparse row stands for."""
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
        nominal = kind.startswith("{")
        levels = _cells(kind.strip("{} ")) if nominal else []
        first.append(levels[0] if levels else 0.0)
        if name not in context.special() and kind.lower() != "string":
            given = context.types.get(name)
            numeric = kind.split()[0].lower() in ("numeric", "real", "integer")
            context.columns.setdefault(name, Column(name, given or ("numeric" if numeric else "category"), bool(given)))
    raise DataError(f"{source.name} has no @data line; it is not an ARFF file or it is cut off")


def _arff_rows(
    context: Context, source: Source, lines: Iterator[tuple[int, str]], names: list[str], first: list[Any]
) -> Iterator[Row]:
    for line, text in lines:
        try:
            record = _sparse(text, names, first, context.omitted) if text.startswith("{") else _dense(text, names)
        except DataError as error:
            context.failed(source.name, line, None, str(error))
            continue
        yield split_record(context, line, record)


def _cells(text: str) -> list[str]:
    quote = "'" if text.count("'") >= text.count('"') else '"'
    return next(csv.reader([text], quotechar=quote, skipinitialspace=True, escapechar="\\"), [])


def _dense(text: str, names: list[str]) -> dict[str, Any]:
    cells = [cell.strip() for cell in _cells(text)]
    if len(cells) != len(names):
        raise DataError(f"{len(cells)} cells where {len(names)} attributes are declared")
    return dict(zip(names, cells, strict=True))


def _sparse(text: str, names: list[str], first: list[Any], omitted: str) -> dict[str, Any]:
    record: dict[str, Any] = dict(zip(names, first, strict=True)) if omitted == "zero" else {}
    for cell in _cells(text.strip("{} ")):
        index, _, value = cell.strip().partition(" ")
        if not index.isdigit() or int(index) >= len(names):
            raise DataError(f"{cell!r} is not 'index value' with an index below {len(names)}")
        record[names[int(index)]] = value.strip().strip("'\"")
    return record
