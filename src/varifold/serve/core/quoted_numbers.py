"""Find fields whose strings are numbers, which would be a category each, while instances arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from varifold.base.number_texts import MOST, are_numbers
from varifold.errors import DataError
from varifold.streams.readers.notation import COMMA, Notation, detect_notations

_MOST_FIELDS = 400
"""Fields that are looked at; those that come later are not."""
_LONGEST = 200
"""Most characters of the name of a field, or of a text, that is looked at."""


class QuotedNumbers:
    """Calls `report` once with each field whose first different strings are numbers, with one and their notation."""

    def __init__(self, report: Callable[[str, str, Notation], None]) -> None:
        self._report = report
        self._texts: dict[str, dict[str, None] | None] = {}  # different texts by field; None once it is decided

    def see(self, name: str, text: str) -> None:
        """Take a string of a field into account."""
        texts = self._texts.get(name)
        if texts is None:
            if name in self._texts or len(self._texts) >= _MOST_FIELDS or len(name) > _LONGEST:
                return
            texts = self._texts[name] = {}
        texts[text[:_LONGEST]] = None
        if len(texts) == MOST:
            self._texts[name] = None
            if are_numbers(texts):
                self._report(name, next(iter(texts)), _notation_of(texts))


def _notation_of(texts: Iterable[str]) -> Notation:
    """Return how numbers are written; 1,234 alone, which can be read in two ways, with a decimal comma."""
    try:
        return detect_notations({"": list(texts)}, None, None, {}, "")[""]
    except DataError:
        return COMMA
