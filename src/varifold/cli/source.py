"""Input of a command: files with reading options, or a data set by name."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from varifold._engine.data.block import concatenate
from varifold.base import Block
from varifold.base.clock import ORDERS
from varifold.base.plural import plural
from varifold.base.spec import split_pairs
from varifold.cli.numbers import positive
from varifold.errors import DataError, ParameterError, UnknownNameError
from varifold.streams.readers.dates import PARTS
from varifold.streams.readers.notation import THOUSANDS
from varifold.streams.readers.sources import FORMATS, OWN_LABELS
from varifold.streams.stream import BLOCK_ROWS, Batch

_KINDS = ("numeric", "category", "text")


class Once(argparse.Action):
    """An option with one value; giving it twice is an error, since the first value would be lost."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Set the value."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, f"given twice: {getattr(namespace, self.dest)} and {values}")
        setattr(namespace, self.dest, values)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare FILE, --data and how files are read."""
    source = parser.add_argument_group("input")
    source.add_argument("files", nargs="*", metavar="FILE", help="one or more files, read in this order; - is stdin")
    source.add_argument(
        "--target", action=Once, metavar="COL", help="column of the label (svmlight files contain theirs)"
    )
    source.add_argument("--data", action=Once, metavar="NAME", help="a registered data set instead of files")
    add_reading_options(parser)


class Joined(argparse.Action):
    """Add to what the same option was given before, which argparse would drop."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Store the values of all occurrences: tuples one after another, or one dict, in which lists are joined."""
        before = getattr(namespace, self.dest) or type(values)()
        if isinstance(values, dict):
            both = {name: _union(before.get(name, []), parts) for name, parts in values.items() if type(parts) is list}
            setattr(namespace, self.dest, {**before, **values, **both})
        else:
            setattr(namespace, self.dest, (*before, *values))


def _union(first: list[str], second: list[str]) -> list[str]:
    """Join two lists, each value once."""
    return list(dict.fromkeys([*first, *second]))


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Declare how files are read."""
    parser.set_defaults(notations=None)  # no option: saved in a model file
    reading = parser.add_argument_group("how files are read")
    reading.add_argument(
        "--types",
        type=types,
        action=Joined,
        metavar="COL=KIND,...",
        help="types of columns (numeric, category, text), if not as detected",
    )
    add_dates(reading)
    add_target_type(reading)
    reading.add_argument(
        "--on-error", choices=["raise", "skip"], help="what to do with rows that cannot be read (default raise)"
    )
    reading.add_argument("--weight", metavar="COL", help="column of sample weights")
    reading.add_argument("--id", metavar="COL", help="column that identifies rows; not a feature")
    reading.add_argument("--time", metavar="COL", help="column of time stamps; not a feature")
    reading.add_argument("--ignore", type=listed, action=Joined, metavar="COL,...", help="columns to leave out")
    reading.add_argument(
        "--absent",
        type=listed,
        action=Joined,
        metavar="TEXT,...",
        help="cells that mean absent (in addition to empty ones)",
    )
    reading.add_argument(
        "--omitted", choices=["absent", "zero"], help="meaning of what sparse rows leave out (default absent)"
    )
    reading.add_argument("--input-format", choices=FORMATS, help="format of the files, if not detected")
    reading.add_argument("--encoding", metavar="NAME", help="encoding of all text files, if not as detected")
    reading.add_argument("--delimiter", metavar="CHAR", help="separator of CSV, if not detected")
    reading.add_argument("--decimal", metavar="CHAR", choices=[".", ","], help="decimal separator, if not detected")
    reading.add_argument(
        "--thousands", metavar="CHAR", choices=THOUSANDS, help="separator of thousands, if not detected"
    )
    reading.add_argument("--no-header", action="store_true", help="CSV without names: columns are c1, c2, ...")
    reading.add_argument("--max-line", type=positive, metavar="BYTES", help="longest line (default 64 MB)")


def add_target_type(parser: Any) -> None:
    """Declare --target-type."""
    parser.add_argument(
        "--target-type",
        choices=["class", "number"],
        help="type of the target, if not as detected: a class, or a number to predict",
    )


def add_dates(parser: Any) -> None:
    """Declare --dates and --date-order."""
    parser.add_argument(
        "--dates",
        type=dates,
        action=Joined,
        metavar="COL=PART+...,...",
        help=f"features of dates: {', '.join(PARTS)}, age",
    )
    parser.add_argument(
        "--date-order", choices=ORDERS, help="order of dates such as 03/04/2026: day first, or month first"
    )


def types(text: str) -> dict[str, str]:
    """Parse ``COL=KIND,...`` to types by column name."""
    found = {}
    for column, kind in split_pairs(text, last=True):
        if kind not in _KINDS:
            part = column if kind is None else f"{column}={kind}"
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form COL=numeric|category|text")
        found[column] = kind
    return found


def dates(text: str) -> dict[str, list[str]]:
    """Parse ``COL=PART+PART,...`` to parts by column name."""
    found: dict[str, list[str]] = {}
    for column, parts in split_pairs(text, last=True):
        if parts is None:
            raise argparse.ArgumentTypeError(f"{column!r} is not of the form COL=hour+weekday")
        found[column] = _union(found.get(column, []), parts.split("+"))
    return found


def listed(text: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(text.split(","))


def reading_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given options of `streams.read`."""
    given = {
        "target_type": args.target_type,
        "types": args.types,
        "dates": args.dates,
        "date_order": args.date_order,
        "on_error": args.on_error,
        "weight": args.weight,
        "id": args.id,
        "time": args.time,
        "ignore": args.ignore,
        "absent": None if args.absent is None else ("", *args.absent),
        "omitted": args.omitted,
        "format": args.input_format,
        "encoding": args.encoding,
        "delimiter": args.delimiter,
        "decimal": args.decimal,
        "thousands": args.thousands,
        "notations": args.notations,
        "header": False if args.no_header else None,
        "max_line": args.max_line,
    }
    return {name: value for name, value in given.items() if value is not None}


@dataclass
class Input:
    """A whole data set in memory, or a stream that is read while it is learned."""

    name: str
    """Name of the data set, or the paths of the files."""
    title: str
    """Names without folders; of more than three files the first and the number of the others."""
    whole: Any = None
    stream: Any = None

    def load(self) -> Any:
        """Load the whole input: a data set, or a block of all rows of the files."""
        if self.whole is None:
            blocks = list(self.stream.blocks())
            if not blocks:
                raise no_instances(self.name, self.problems)
            self.whole = concatenate(blocks)
        return self.whole

    def columns(self) -> int | None:
        """Return the number of columns before indicators and words, if known."""
        if self.stream is not None:
            return int(self.stream.width)
        return None if isinstance(self.whole, Block) else int(self.whole.columns)

    @property
    def skipped(self) -> int:
        """Return the number of rows that could not be read."""
        return 0 if self.stream is None else int(self.stream.skipped)

    @property
    def problems(self) -> list[str]:
        """Describe what was wrong with the first of them."""
        return [] if self.stream is None else list(self.stream.problems)


def check(args: argparse.Namespace) -> None:
    """Raise an error for options that exclude each other, before anything is read."""
    if bool(args.files) == bool(args.data):
        raise ParameterError(f"{args.command} needs either FILE with --target COL or --data NAME")
    own_labels = args.input_format == "svmlight" or all(f.endswith(OWN_LABELS) for f in args.files)
    if args.files and not args.target and not own_labels:
        raise ParameterError(f"--target COL is needed: which column of {args.files[0]} holds the label?")
    reading = {name for name in reading_options(args) if name != "target_type"}
    if args.data and (args.target or reading):
        option = "target" if args.target else min(reading).replace("_", "-")
        raise ParameterError(f"--{option} is for files; a data set knows its own")


def open_input(args: argparse.Namespace, key: str | None = None, block_rows: int = BLOCK_ROWS) -> Input:
    """Open the input that the options of `add_options` name; every row of files must have the key."""
    if args.data:
        from varifold.datasets import load

        return Input(args.data, args.data, whole=load(args.data))
    from varifold.streams import read

    stream = read(
        args.files, target=args.target, unlabelled="keep", key=key, block_rows=block_rows, **reading_options(args)
    )
    return Input(" ".join(args.files), title_of(args.files), stream=stream)


def named_set(what: Sequence[str]) -> Any:
    """Load the registered set if one name is given that is not a file; return None for files."""
    if len(what) > 1 or what[0] == "-" or os.path.exists(what[0]):
        return None
    from varifold.datasets import load

    try:
        return load(what[0])
    except UnknownNameError as error:
        raise UnknownNameError(f"{error}; and no file has that name") from None


def batches_of(args: argparse.Namespace) -> Iterator[Batch]:
    """Yield the batches of the files in `args.what`; at the end report skipped rows on standard error."""
    from varifold.streams import read

    stream = read(args.what, target=args.target, unlabelled="keep", **reading_options(args))
    yield from stream.batches()
    if stream.skipped:
        print(f"varifold: {plural(stream.skipped, 'row')} left out, the first: {stream.problems[0]}", file=sys.stderr)


def no_instances(name: str, problems: Sequence[str]) -> DataError:
    """Return the error about input without an instance, with what was wrong with the first row that was skipped."""
    skipped = f"; the first row that was skipped: {problems[0]}" if problems else ""
    return DataError(f"{name} has no instances{skipped}")


def title_of(files: Sequence[str]) -> str:
    """Return the names of files without folders; of more than three the first and the number of the others."""
    names = ["standard input" if file == "-" else os.path.basename(file) for file in files]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more files"
