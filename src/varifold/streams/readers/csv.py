"""Read CSV and similar text: detect separator, header and types in the first lines, then parse batch by batch."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

from varifold._engine.data.block import adopt
from varifold.errors import DataError, VarifoldWarning
from varifold.streams.readers import _csv as native
from varifold.streams.readers._csv import Delimited
from varifold.streams.readers._numbers import parse_number
from varifold.streams.readers.ahead import read_ahead
from varifold.streams.readers.context import NAME_ENCODING, SAMPLE, Context, bag_of_words
from varifold.streams.readers.notation import (
    POINT,
    Notation,
    detect_notations,
    doubtful_points,
    only_unit,
    without_thousands,
    without_unit,
)
from varifold.streams.readers.sources import Source
from varifold.streams.readers.targets import make_batch
from varifold.streams.stream import Batch

__all__ = ["read_delimited"]

_READ = 1 << 20
_LONG_HINT = " (is a quote left open here?)"
_SEPARATORS = ",;\t|"
_DECLARED = re.compile(rb"sep=([,;\t|])(?=\r?\n)")
"""First line of a file that was written for Excel."""
_NO_NAME = ("", "Unnamed: 0")
"""Header of the index in files of pandas and R, and of one that pandas read and wrote again."""
_ROLES = {"numeric": native.NUMERIC, "category": native.CATEGORY, "text": native.TEXT}
_SPECIAL = {"target": native.TARGET, "weight": native.WEIGHT, "id": native.EXTRA, "time": native.EXTRA}


def read_delimited(context: Context, source: Source) -> Iterator[Batch]:
    """Yield the batches of one file."""
    return _Reader(context, source).batches()


class _Reader:
    def __init__(self, context: Context, source: Source) -> None:
        self.context = context
        self.source = source
        self.buffer = source.read(_READ)
        self.final = False
        self.names: list[str] = []
        self._fill_sample()
        if not self.buffer.strip():
            raise DataError(f"{source.name} is empty; a header line was expected")
        declared = _DECLARED.match(self.buffer)
        if declared:
            self.buffer = self.buffer[declared.end() :]  # its end stays, so that lines keep their numbers
        self.separator = context.delimiter or (declared[1].decode() if declared else _separator(self.buffer))
        self.parser = self._parser()
        head = self.parser.records(self.buffer, SAMPLE + 1, self.final)
        if not head:
            raise DataError(f"{source.name}, line 1: the header does not end; is a quote left open?")
        self.sample = self._start([cells for _, cells, _ in head], head)

    def _fill_sample(self) -> None:
        """Read enough bytes for the header and a first sample of rows."""
        while not self.final and (self.buffer.count(b"\n") < 2 or len(self.buffer) < _READ):
            self._more()
            if len(self.buffer) > self.context.max_line:
                break

    def _more(self) -> None:
        # a quarter stays in the cache while it is parsed; a longer record doubles the buffer
        data = self.source.read(max(_READ // 4, len(self.buffer)))
        self.buffer += data
        self.final = not data

    def _parser(self) -> Delimited:
        context = self.context
        return Delimited(
            context.vocabulary,
            context.labels,
            self.separator,
            context.absent,
            lambda line, column, message: context.failed(self.source.name, line, column, message),
            bag_of_words,
            longest=context.max_line,
            too_long=context.too_long(_LONG_HINT),
            unlabelled=context.unlabelled == "keep",
        )

    def _start(self, rows: list[list[str]], head: list[tuple[int, list[str], int]]) -> list[list[str]]:
        """Set and check the names of the columns and move to the first record; return the sample of records."""
        context, name = self.context, self.source.name
        self.unnamed = False
        if context.header:
            header = _with_row_names(rows[0], rows[1:])
            self.unnamed = header[0].strip() in _NO_NAME
            self.names = _header(header, name, head[0][0], not context.names_only)
            self.parser.line = head[0][0] + 1 + sum(cell.count("\n") for cell in rows[0])
            self.buffer = self.buffer[head[0][2] :]
            rows = rows[1:]
        else:
            self.names = [f"c{j + 1}" for j in range(len(rows[0]))]
        context.require(self.names, name)
        return rows

    def _set_columns(self) -> None:
        """Set the roles of the columns and their notations of numbers, detected in the sample."""
        context = self.context
        cells = self._cells(self.sample)
        if self.unnamed:
            context.leave_out_index(self.names[0], cells[self.names[0]], self.source.name)
        notations = self._notations(cells)
        self.parser.set_columns(
            self.names,
            self._roles(cells, notations),
            context.dates.features,
            context.time,
            context.key,
            [notations.get(column, POINT) for column in self.names],
            only_unit,
        )

    def _cells(self, rows: list[list[str]]) -> dict[str, list[str]]:
        """Return the cells of each column in the sample, without absent ones."""
        absent = set(self.context.absent)
        complete = [row for row in rows if len(row) == len(self.names)]
        return {column: [row[j] for row in complete if row[j] not in absent] for j, column in enumerate(self.names)}

    def _notations(self, cells: dict[str, list[str]]) -> dict[str, Notation]:
        """Detect how numbers are written in each column that may hold any; report separators of thousands once."""
        context = self.context
        if context.names_only:
            return {}
        other = {context.id, context.time, *context.ignore}
        other |= {column for column, kind in context.types.items() if kind != "numeric"}
        columns = {c: sample for c, sample in cells.items() if c not in other and c not in context.dates}
        if context.target in columns and context.target_type == "class":
            columns[context.target] = []  # its labels are names: they are read as the other columns are
        numeric = [column for column in columns if context.types.get(column) == "numeric"]
        units = {column: context.add_unit(column, columns[column], self.source.name) for column in numeric}
        for column, unit in units.items():
            cells[column] = columns[column] = [without_unit(cell, unit) for cell in columns[column]]
        known = context.notations
        notations = detect_notations(columns, context.decimal, context.thousands, known, self.source.name)
        context.report_thousands({c: n for c, n in notations.items() if c not in known and n.thousands}, columns)
        if self.separator == ";" and context.decimal is None and context.thousands is None:
            context.report_points([c for c in doubtful_points(columns) if notations[c] == POINT], columns)
        notations |= {column: notations[column]._replace(unit=unit) for column, unit in units.items()}
        known.update({column: notation for column, notation in notations.items() if notation != POINT})
        return notations

    def _roles(self, cells: dict[str, list[str]], notations: dict[str, Notation]) -> list[int]:
        """Return the roles of the columns; types of new columns are inferred from the sample."""
        context = self.context
        special = context.special()
        roles = []
        for column in self.names:
            if column in context.dates:
                roles.append(native.DATE)
            elif column in special:
                roles.append(_SPECIAL[special[column]])
            elif column in context.ignore:
                roles.append(native.IGNORED)
            else:
                decimal, thousands = notations.get(column, POINT).separators
                sample = [without_thousands(c, thousands) for c in cells[column]] if thousands else cells[column]
                roles.append(_ROLES[context.column(column, sample, decimal=decimal).type])
        context.report_units()
        return roles

    def batches(self) -> Iterator[Batch]:
        """Yield the batches; from the second on a thread reads them ahead, where that can be stopped."""
        self._set_columns()
        batches = self._batches()
        first = next(batches, None)
        if first is None:
            return
        if self.final or not self._may_read_ahead():
            yield first
            yield from batches
        else:
            yield from read_ahead(first, batches, self._add_after)

    def _may_read_ahead(self) -> bool:
        """Return False for a pipe, which may never continue, and while the type of the target is not known."""
        path, context = self.source.path, self.context
        return path is not None and path.is_file() and (context.target is None or context.target_type is not None)

    def _add_after(self, wait: Callable[[], None]) -> None:
        self.parser.before_new = wait

    def _batches(self) -> Iterator[Batch]:
        """Yield the batches, including the rows before an unreadable one; then raise the error."""
        try:
            yield from self._read_batches()
        except DataError:
            if self.parser.rows:
                yield self._batch()
            raise

    def _read_batches(self) -> Iterator[Batch]:
        parser, context = self.parser, self.context
        place = 0
        while True:
            start = place
            parser.numeric_target = context.target_type == "number"
            place = parser.feed(self.buffer, place, self.final, context.block_rows, context.block_cells)
            if parser.rows >= context.block_rows or parser.cells >= context.block_cells:
                yield self._batch()
                continue
            if self.final and place >= len(self.buffer):
                break
            if place == start and len(self.buffer) - place > context.max_line:
                place = self._skip_long_record(place)
                continue
            if self.final and place == start:
                break
            self.buffer = self.buffer[place:]
            place = 0
            if not self.final:
                self._more()
        if parser.rows:
            yield self._batch()

    def _skip_long_record(self, place: int) -> int:
        """Skip the first line of a record that is too long; return where the next line begins."""
        if self.parser.before_new is not None:
            self.parser.before_new()
        self.context.failed(self.source.name, self.parser.line, None, self.context.too_long(_LONG_HINT))
        self.parser.line += 1
        end = self.buffer.find(b"\n", place)
        while end < 0 and not self.final:
            self.buffer = b""
            self._more()
            end = self.buffer.find(b"\n")
        return end + 1 if end >= 0 else len(self.buffer)

    def _batch(self) -> Batch:
        context = self.context
        indptr, indices, values, codes, targets, weights, extras = self.parser.finish()
        for name in self.parser.revised:
            context.columns[name].revised = True
        block = adopt(context.vocabulary, indptr, indices, values, codes, context.labels, weights)
        if targets is not None:
            block = block.with_targets(targets)
        kept = [name for name in self.names if name in (context.id, context.time)]
        columns = dict(zip(kept, zip(*extras, strict=True), strict=True)) if extras and kept else {}
        ids = list(columns[context.id]) if context.id in columns else None
        times = list(columns[context.time]) if context.time in columns else None
        return make_batch(context, block, ids, times)


def _separator(data: bytes) -> str:
    """Detect the separator: the one that occurs equally often in most of the first lines."""
    text = data[:65_536].decode("utf-8", "replace")
    lines = [line for line in _unquoted(text).splitlines() if line.strip()][:50]
    best = ","
    best_score = (0.0, 0)
    for candidate in _SEPARATORS:
        counts = Counter(line.count(candidate) for line in lines)
        first = lines[0].count(candidate) if lines else 0
        score = (counts[first] / len(lines), first) if first else (0.0, 0)
        if score > best_score:
            best, best_score = candidate, score
    return best


def _unquoted(text: str) -> str:
    """Remove the parts of a text between double quotes."""
    return "".join(text.split('"')[::2])


def _with_row_names(header: list[str], rows: list[list[str]]) -> list[str]:
    """Return the header, after an empty name if every row has one cell more: R writes row names without a name."""
    longer = bool(rows) and all(len(row) == len(header) + 1 for row in rows)
    return ["", *header] if longer and any(row[-1] for row in rows) else header


def _header(cells: list[str], file: str, line: int, warn: bool) -> list[str]:
    """Return the names of the columns; they must be UTF-8 and not all numbers. One used twice is changed."""
    if cells and all(parse_number(cell) is not None for cell in cells):
        raise DataError(f"{file}, line {line}: the header holds numbers only; pass header=False if there is none")
    names: dict[str, None] = {}
    taken = set(cells)
    for j, cell in enumerate(cells):
        if any("\udc80" <= c <= "\udcff" for c in cell):
            raise DataError(f"{file}, line {line}: the name of column {j + 1} is not UTF-8; {NAME_ENCODING}")
        name = cell or f"column{j + 1}"
        if name in names:
            unused = next(f"{name}#{k}" for k in range(2, len(cells) + 2) if f"{name}#{k}" not in taken)
            if warn:
                warnings.warn(f"{file}: the name {name!r} is used twice; column {j + 1} is called {unused!r} here",
                              VarifoldWarning, stacklevel=2)  # fmt: skip
            taken.add(unused)
            name = unused
        names[name] = None
    return list(names)
