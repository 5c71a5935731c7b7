"""Detect how the columns of a text file write numbers: the separators of decimals and of thousands, and the unit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from varifold.errors import DataError
from varifold.streams.readers._numbers import parse_number

__all__ = [
    "POINT",
    "THOUSANDS",
    "Notation",
    "detect_notations",
    "doubtful_points",
    "main_unit",
    "number_of",
    "only_unit",
    "unit_of",
    "without_thousands",
    "without_unit",
]

THOUSANDS = (".", ",", "'", " ")
"""Separators of thousands; an apostrophe stands for a curly one, a space for no-break and thin ones as well."""


class Notation(NamedTuple):
    """Separators of decimals and of thousands, and the unit of the numbers; "" if there is none."""

    decimal: str = "."
    thousands: str = ""
    unit: str = ""

    @property
    def separators(self) -> tuple[str, str]:
        """Return the separators of decimals and of thousands."""
        return self.decimal, self.thousands

    @property
    def parts(self) -> list[str]:
        """Return separators and unit without empty ones at the end, as JSON shows them."""
        return list(self) if self.unit else [self.decimal, self.thousands] if self.thousands else [self.decimal]


POINT = Notation()
COMMA = Notation(",")
POINT_GROUPS = Notation(",", ".")
COMMA_GROUPS = Notation(".", ",")
_WHOLE = r"[-+]?\d+(?:[eE][-+]?\d+)?"
_GROUPED = r"[-+]?(?:[1-9]\d{{0,2}}(?:{t}\d{{3}})+|\d+)(?:{d}\d*)?"
_PATTERNS = {
    POINT: re.compile(rf"{_WHOLE}|[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?"),
    COMMA: re.compile(rf"{_WHOLE}|[-+]?(?:\d+,\d*|,\d+)(?:[eE][-+]?\d+)?"),
    POINT_GROUPS: re.compile(_GROUPED.format(t=r"\.", d=",")),
    COMMA_GROUPS: re.compile(_GROUPED.format(t=",", d=r"\.")),
}
_MARKS = {"'": "'’", " ": " \xa0\u202f\u2009"}
"""Characters that separate thousands and nothing else."""
_MARKED = {
    mark: {Notation(d, mark): re.compile(_GROUPED.format(t=f"[{_MARKS[mark]}]", d=re.escape(d))) for d in decimals}
    for mark, decimals in (("'", ".,"), (" ", ",."))
}
_WITH_UNIT = re.compile(
    r"([$€£¥]?)\s*([-+]?\d(?:(?:[\d.,'’]|[ \xa0\u202f\u2009](?=\d{3}))*\d)?)\s*((?:[^\W\d_]|[%°$€£¥/²³])*)"
)
"""A number with its unit after it, or with a currency before it."""
FEWEST_NUMBERS = 3
"""Number of different numbers from which texts are taken for numbers with a unit."""
_LONGEST_GROUPED = 64
"""Most bytes of a number with separators of thousands; a longer text is none to `parse_number`."""
_FEW = 100
"""Number of cells checked first, to skip columns with points that are not numbers."""
_TWO_GROUPS = re.compile(r"\.\d{3}\.\d{3}")


def detect_notations(
    columns: Mapping[str, Sequence[str]],
    decimal: str | None,
    thousands: str | None,
    known: Mapping[str, Notation],
    file: str,
) -> dict[str, Notation]:
    """Detect the notation of each column from a sample of its cells.

    Separators that the caller sets apply to all columns. An ambiguous column, such as one of 1,234, is read like the
    other columns of the file, or as in earlier files (`known`); if neither decides, raise a DataError.
    """
    if thousands is not None:
        given = Notation(decimal or {".": ",", ",": "."}.get(thousands, "."), thousands)
        return dict.fromkeys(columns, given)
    if decimal is not None:
        return {name: _with_decimal(cells, decimal) for name, cells in columns.items()}
    fits = {name: _fitting(cells) for name, cells in columns.items()}
    plain = {name: each for name, notation in known.items() if (each := notation._replace(unit="")) != POINT}
    evidence = {found[0] for found in fits.values() if len(found) == 1} | set(plain.values())
    return {name: _chosen(name, columns[name], fits[name], plain.get(name), evidence, file) for name in columns}


def doubtful_points(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns such as 1.234 whose points may separate thousands; none if another has decimal points."""
    doubtful = []
    for name, cells in columns.items():
        found = _fitting(cells)
        if len(found) == 1 and found[0].decimal == ".":
            return []
        if POINT in found:
            doubtful.append(name)
    return doubtful


def _with_decimal(cells: Sequence[str], decimal: str) -> Notation:
    """Return the notation with this decimal separator; thousands are separated only if the numbers require it."""
    plain, grouped = (POINT, COMMA_GROUPS) if decimal == "." else (COMMA, POINT_GROUPS)
    marked = [notation for notation in _marked(cells) if notation.decimal == decimal]
    if marked:
        return marked[0]
    numbers = _numbers(cells, (_PATTERNS[plain], _PATTERNS[grouped]))
    return grouped if not _all_fit(numbers, plain) and _all_fit(numbers, grouped) else plain


def _marked(cells: Sequence[str]) -> list[Notation]:
    """Return the notations of a column whose thousands are separated by apostrophes or spaces; none of others."""
    text = "\n".join(cells)
    for mark, patterns in _MARKED.items():
        if any(character in text for character in _MARKS[mark]):
            numbers = _numbers(cells, patterns.values())
            fits = [each for each, pattern in patterns.items() if all(map(pattern.fullmatch, numbers))]
            if any(character in number for number in numbers for character in _MARKS[mark]):
                return fits
    return []


def _numbers(cells: Sequence[str], patterns: Iterable[re.Pattern[str]]) -> list[str]:
    """Return the cells that one of the patterns matches; none if fewer than nine in ten are."""
    patterns = list(patterns)
    plain = [pattern for pattern in patterns if pattern in (_PATTERNS[POINT], _PATTERNS[COMMA])]
    numbers = [
        cell
        for cell in cells
        if any(pattern.fullmatch(cell) for pattern in (patterns if _may_be_grouped(cell) else plain))
    ]
    return numbers if 10 * len(numbers) >= 9 * len(cells) else []


def _may_be_grouped(cell: str) -> bool:
    """Return whether a text is not longer than the numbers that are read with separators of thousands."""
    return len(cell.encode("utf-8", "surrogatepass")) <= _LONGEST_GROUPED


def _all_fit(cells: Iterable[str], notation: Notation) -> bool:
    match = _PATTERNS[notation].fullmatch
    return all(match(cell) for cell in cells)


def _fitting(cells: Sequence[str]) -> list[Notation]:
    """Return the candidate notations of a column; none if its cells have no separator or are not numbers."""
    marked = _marked(cells)
    if marked:
        return marked
    text = "\n".join(cells)
    if "," not in text and not _TWO_GROUPS.search(text):
        # points alone are decimals; 1.234 is ambiguous only in a file with decimal commas
        if "." not in text or not _numbers(cells[:_FEW], (_PATTERNS[POINT],)):
            return []
        grouped = _all_fit(cells[:_FEW], POINT_GROUPS) and _all_fit(_numbers(cells, (_PATTERNS[POINT],)), POINT_GROUPS)
        return [POINT, POINT_GROUPS] if grouped else [POINT]
    numbers = _numbers(cells, _PATTERNS.values())
    fits = [notation for notation in _PATTERNS if numbers and _all_fit(numbers, notation)]
    if POINT in fits:
        return [POINT]
    if COMMA in fits:
        return [COMMA, COMMA_GROUPS] if COMMA_GROUPS in fits else [COMMA]
    return fits


def _chosen(
    name: str, cells: Sequence[str], fits: list[Notation], known: Notation | None, evidence: set[Notation], file: str
) -> Notation:
    """Choose a fitting notation, as in earlier files or the rest of this one; raise a DataError if it is ambiguous."""
    commas, points = ({each for each in evidence if each.decimal == decimal} for decimal in ",.")
    if not fits:
        return COMMA if commas and not points else POINT
    if known in fits:
        return known
    if len(fits) == 1:
        return fits[0]
    if fits[0].thousands in _MARKS:  # whole numbers
        decimal = "," if commas and not points else "." if points and not commas else fits[0].decimal
        return next(fit for fit in fits if fit.decimal == decimal)
    if POINT in fits:  # 1.234: thousands only if the file has decimal commas
        if not commas:
            return POINT
        if POINT_GROUPS in evidence and not points:
            return POINT_GROUPS
        first, second = POINT, POINT_GROUPS
    else:  # 1,234
        if commas and not points:
            return COMMA
        if points and not commas:
            return COMMA_GROUPS
        first, second = COMMA, COMMA_GROUPS
    cell = next(cell for cell in cells if first.decimal in cell)
    read = [float(cell.replace(first.decimal, as_)) for as_ in (".", "")]
    raise DataError(
        f"{file}: column {name!r} can be read in two ways: {cell} is {read[0]:g} or {read[1]:,.0f}; give "
        f"decimal={first.decimal!r} (--decimal {first.decimal}) or thousands={second.thousands!r} "
        f"(--thousands {second.thousands})"
    )


def unit_of(texts: Sequence[str]) -> str | None:
    """Return the unit of texts that are numbers followed, or preceded, by the same unit; None if they are not."""
    units, numbers = set(), set()
    for text in texts:
        number, unit = _split_unit(text)
        units.add(unit)
        numbers.add(number)
        if not unit or len(units) > 1:
            return None
    return units.pop() if len(numbers) >= FEWEST_NUMBERS else None


def main_unit(texts: Sequence[str]) -> str:
    """Return the unit of a column of numbers, "" if it has none.

    More than one text in ten has it, and at least nine in ten have it or are numbers alone.
    """
    units = Counter(match[3] or match[1] for text in texts if (match := _WITH_UNIT.fullmatch(text.strip())))
    alone = units.pop("", 0)
    unit, count = units.most_common(1)[0] if units else ("", 0)
    return unit if 10 * count > len(texts) and 10 * (count + alone) >= 9 * len(texts) else ""


def without_unit(text: str, unit: str) -> str:
    """Return the number of a text with this unit as it is written; another text as it is."""
    number, found = _split_unit(text)
    return number if found and found == unit else text


def only_unit(text: str, unit: str) -> str:
    """Return the same as `without_unit`; raise a DataError if the text is a number with another unit."""
    number, found = _split_unit(text)
    if found and found != unit:
        raise DataError(f"{text!r} has another unit than {unit!r}; convert it, or empty the cell")
    return number


def _split_unit(text: str) -> tuple[str, str]:
    """Return the number of a text as it is written, and its unit; the text and "" if it is not a number with a unit."""
    match = _WITH_UNIT.fullmatch(text.strip())
    unit = match and (match[3] or match[1])
    return (match[2], unit) if match and unit else (text, "")


def without_thousands(cell: str, thousands: str) -> str:
    """Return a number without its separators of thousands."""
    return cell.translate(dict.fromkeys(map(ord, _MARKS.get(thousands, thousands))))


def number_of(text: str, notation: Notation) -> float | None:
    """Return the number that a text spells in this notation, with its unit or without, or None.

    Raise a DataError if it has another unit.
    """
    bare = only_unit(text, notation.unit) if notation.unit else text
    return parse_number(bare, *notation.separators)
