"""Write records as CSV, JSON lines or Parquet, batch by batch."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from varifold.base.atomic import replacing
from varifold.errors import ParameterError, missing_extra

FORMATS = ("csv", "jsonl", "parquet")
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
_NUMBERS = ("row", "p", "p_true", "prediction", "error")
_BOUND = re.compile(r"(low|high)( 0\.\d+)?")
Write = Callable[[list[dict[str, Any]]], None]


def input_name(column: Any, own: Collection[str]) -> str:
    """Return the name of an input column in the output, which has names of its own."""
    return f"{column} (input)" if column in own else str(column)


def check_format(path: str) -> str:
    """Return the format of the suffix of a path; raise an error for an unknown suffix."""
    kind = _SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        raise ParameterError(f"the suffix of {path} is none of {', '.join(_SUFFIXES)}; name a file with one of them")
    return kind


@contextmanager
def open_writer(path: str | None, format: str | None) -> Iterator[Write]:
    """Return a function that writes records, which all have the first one's keys, to a file or to standard output.

    The file appears, or is replaced, when everything is written; after an error it is as it was.
    """
    kind = format or (check_format(path) if path else "csv")
    if path is None:
        if kind == "parquet":
            raise ParameterError("--format parquet needs --out FILE")
        yield _text(sys.stdout, kind)
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe or a device
        with _to_file(target, kind) as write:
            yield write
        return
    with replacing(target.resolve()) as (part, _), _to_file(part, kind) as write:
        yield write


@contextmanager
def _to_file(path: Path, kind: str) -> Iterator[Write]:
    if kind == "parquet":
        with _parquet(str(path)) as write:
            yield write
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        yield _text(file, kind)


def _text(file: IO[str], kind: str) -> Write:
    if kind == "jsonl":
        return lambda records: file.writelines(
            json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records
        )
    started = False

    def write(records: list[dict[str, Any]]) -> None:
        nonlocal started
        writer = csv.DictWriter(file, fieldnames=list(records[0]), lineterminator="\n")
        if not started:
            writer.writeheader()
            started = True
        writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)

    return write


def _cell(value: Any) -> Any:
    """Convert a value for a table; a list, such as a set of labels, becomes JSON."""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list) else value


@contextmanager
def _parquet(path: str) -> Iterator[Write]:
    """Return a function that writes records to a Parquet file.

    Numbers are kept and everything else (ids, labels) becomes text, so that all batches have one schema.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra("Parquet needs pyarrow", "data") from error
    writer: Any = None

    def write(records: list[dict[str, Any]]) -> None:
        nonlocal writer
        columns = {}
        for name in records[0]:
            values = [record[name] for record in records]
            number = name in _NUMBERS or name.startswith("p:") or _BOUND.fullmatch(name)
            if number:
                columns[name] = pa.array(values, pa.int64() if name == "row" else pa.float64())
            else:
                columns[name] = pa.array([None if v is None else str(_cell(v)) for v in values], pa.string())
        table = pa.table(columns)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table.cast(writer.schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
