"""Rules that turn what arrives into an instance: the same for HTTP, web sockets, batches, MQTT and `follow`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from varifold._engine.names.vocabulary import is_missing
from varifold.ask import AskPolicy
from varifold.base.clock import looks_like_time
from varifold.base.json_text import write_json
from varifold.base.nearest import nearest
from varifold.errors import DataError, ParameterError
from varifold.serve.core import bodies
from varifold.serve.core.errors import RejectedError
from varifold.serve.core.quoted_numbers import QuotedNumbers
from varifold.streams.readers._numbers import label_of
from varifold.streams.readers.context import TYPES, bag_of_words
from varifold.streams.readers.dates import Dates, date_error, in_python
from varifold.streams.readers.notation import POINT, THOUSANDS, Notation, number_of, without_unit
from varifold.streams.readers.records import flatten

_PUT = 'PUT /models/NAME with {"input": {...}}'
_NUMBERS = frozenset({float, int, bool, type(None)})
_NAMES = ("id", "key", "target", "time", "ignore", "flatten", "dates", "date_order", "types", "notations", "ask")
KEPT = {"key", "ask"}
"""Rules that say nothing about reading, and that a model keeps."""
_OF_FILE = ("target", "id", "time", "weight", "ignore", "dates", "date_order", "types", "notations", "mixed")
"""Options of reading in a model file that are rules, or say something about them."""


class InputRules:
    """Roles of the fields of a record: target, id, key, time, ignored ones; the types of others, and parts of dates.

    Without any rules a record is an instance: objects in it are flattened (``outer.inner``), strings that mean absence
    are absent, lists and strings that look like dates are rejected, other strings are categories. Each instance is
    predicted before the next one arrives, so the type of a column cannot be inferred from later values.

    Parameters
    ----------
    target, id, key
        Fields of the label, of the id under which an instance waits for it, and of the key of learners by key.
    time
        Field of the time, which is no feature unless `dates` names it.
    ignore
        Fields to leave out, whatever they hold.
    flatten
        Whether objects are flattened; if not, they are rejected.
    dates, date_order
        Parts of dates that become features, by field, and the order of day and month: see `varifold.streams.read`.
    types
        What the strings of a field are: ``"text"`` for word counts ``field:word``, ``"numeric"`` for numbers (others
        are rejected), ``"category"`` for categories although they look like dates.
    notations
        How the numbers in the strings of a field are written, if not with a decimal point: separators of decimals and
        of thousands, and the unit, as far as there are any, such as ``[",", ".", "kg"]``.
    ask
        Parameters of the `varifold.ask.AskPolicy` that decides which labels of kept instances are requested, such as
        ``{"budget": 0.05}``; None requests none.

    """

    def __init__(
        self,
        *,
        target: str | None = None,
        id: str | None = None,
        key: str | None = None,
        time: str | None = None,
        ignore: Iterable[str] = (),
        flatten: bool = True,
        dates: Mapping[str, Sequence[str]] | None = None,
        date_order: str | None = None,
        types: Mapping[str, str] | None = None,
        notations: Mapping[str, Sequence[str]] | None = None,
        ask: Mapping[str, Any] | None = None,
    ) -> None:
        self.target = target
        self.id = id
        self.key = key
        self.time = time
        self.ignore = frozenset(ignore)
        self.flatten = flatten
        self.dates = Dates(dates or {}, time, date_order)
        self.types = {name: _checked_kind(name, kind) for name, kind in (types or {}).items()}
        self.texts = frozenset(name for name, kind in self.types.items() if kind == "text")
        self.notations = {name: _checked_notation(name, given) for name, given in (notations or {}).items()}
        self.numbers: QuotedNumbers | None = None
        """Finds fields without a type whose strings are numbers."""
        self.ask = None if ask is None else _checked_policy(ask)
        roles = {"target": target, "id": id, "key": key, "time": time}
        named = {role: given for role, given in roles.items() if given is not None}
        for role, given in named.items():
            first = next(one for one in named if named[one] == given)
            if first != role:
                raise ParameterError(f"{first} and {role} are both {given!r}; give different fields")
        converted = [name for name, kind in self.types.items() if kind != "category"]
        for option, fields in (("ignore", self.ignore), ("dates", self.dates.parts), ("types", converted)):
            if key is not None and key in fields:
                raise ParameterError(f"the key {key!r} is also a field of {option}; leave it out there")
        self._no_roles = not (named or self.ignore or self.dates.parts)

    @classmethod
    def from_json(cls, options: Any) -> Self:
        """Make rules of an object in a request; an error names what is wrong with it."""
        if not isinstance(options, dict):
            raise RejectedError('input is an object such as {"time": "ts", "ignore": ["serial"]}')
        for name, value in options.items():
            if name not in _NAMES:
                raise RejectedError(
                    f"input has no field {name!r}{nearest(name, _NAMES)}; there are {', '.join(_NAMES)}"
                )
            _check_type(name, value)
        try:
            policy = None if options.get("ask") is None else _checked_policy(options["ask"])
        except ParameterError as error:
            raise RejectedError(str(error)) from error
        try:
            return cls(**{name: value for name, value in {**options, "ask": policy}.items() if value is not None})
        except ParameterError as error:
            raise RejectedError(f"input: {error}") from error

    @classmethod
    def of_model(cls, description: Mapping[str, Any]) -> Self:
        """Make the rules of a model from its description, which has them as `input` and `ask`."""
        options, ask = description.get("input", {}), description.get("ask")
        return cls.from_json({**options, "ask": ask} if isinstance(options, dict) and ask is not None else options)

    def for_file(self, reading: Mapping[str, Any], key: Any) -> Self:
        """Return the rules after a file is restored: with none of reading, those by which its learner was trained.

        A numeric column that had other texts as well has no type here, so that these stay categories. The weights of
        the file are left out. `key` is the field of its learners by key.
        """
        if self.reading:
            self.check_key(key)
            return self
        try:
            given = {name: value for name in _OF_FILE if (value := reading.get(name)) is not None}
            for name, value in given.items():
                _check_type(name, value)
            types, mixed = given.get("types", {}), given.pop("mixed", ())
            given["types"] = {
                name: kind
                for name, kind in types.items()
                if kind == "category" or (name not in (key, self.key) and not (kind == "numeric" and name in mixed))
            }
            given["notations"] = {
                name: notation
                for name, notation in given.get("notations", {}).items()
                if name == given.get("target") or given["types"].get(name) == "numeric"
            }
            if (weight := given.pop("weight", None)) is not None:
                given["ignore"] = [*given.get("ignore", ()), weight]
            rules = self.from_json(given | self.to_json())
            rules.check_key(key)
        except RejectedError as error:
            raise RejectedError(
                f"the options of reading in the file cannot be used: {error} (a model that has input rules takes none "
                "from a file)"
            ) from error
        return rules

    def check_key(self, key: Any) -> None:
        """Raise an error if no record would have a key, because the rules take its field for something else."""
        if isinstance(key, str) and key:
            self.from_json(self.to_json() | {"key": key})

    def to_json(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        dates = {name: list(parts) for name, parts in self.dates.parts.items()}
        types = dict(sorted(self.types.items()))
        notations = {name: notation.parts for name, notation in sorted(self.notations.items())}
        options: dict[str, Any] = {"target": self.target, "id": self.id, "key": self.key, "time": self.time}
        options |= {"ignore": sorted(self.ignore), "dates": dates, "date_order": self.dates.order, "types": types}
        options |= {"notations": notations, "ask": self.ask}
        return {name: value for name, value in options.items() if value} | ({} if self.flatten else {"flatten": False})

    @property
    def reading(self) -> dict[str, Any]:
        """Options that say how records are read."""
        return {name: value for name, value in self.to_json().items() if name not in KEPT}

    # ------------------------------------------------------------------ bodies of requests

    def parse_instance(self, text: bytes) -> tuple[dict[str, Any], bytes]:
        """Parse and check a body with an instance; return it and its text, in which the rules are applied."""
        body = bodies.parse(text)
        if bodies.clear_absent_label(body):
            text = write_json(body)
        if self._is_plain(body.get("x")):
            bodies.check_fields(body)
            return body, text
        if "x" in body and self.apply(body):
            text = write_json(body)
        bodies.check_instance(body)
        return body, text

    def parse_row(self, text: bytes) -> tuple[dict[str, Any], bytes]:
        """Parse and check a row of a batch or a stream, as `parse_instance` does."""
        body = bodies.parse(text)
        if bodies.clear_absent_label(body):
            text = write_json(body)
        if self._is_plain(body.get("x")):
            bodies.check_fields(body)
            if "y" in body:
                bodies.check_label(body)
            return body, text
        if "x" in body and self.apply(body):
            text = write_json(body)
        bodies.check_row(body)
        return body, text

    def _is_plain(self, x: Any) -> bool:
        """Return whether an instance consists of numbers and no rule applies to them."""
        if not self._no_roles or type(x) is not dict:
            return False
        try:
            sum(x.values())  # only numbers have a sum: several times as fast as a look at the types
        except TypeError:
            return _NUMBERS.issuperset(map(type, x.values()))
        return True

    def apply(self, body: dict[str, Any]) -> bool:
        """Apply the rules to the instance of a body in place; return whether anything changed.

        Columns for the id and the target move from the instance to the fields of the body, unless it has those.
        """
        x = body["x"]
        if type(x) is not dict or self._is_plain(x):
            return False
        try:
            values = self.flat(x)
            if self.id is not None and not is_missing(value := values.pop(self.id, None)):
                body.setdefault("id", value)
            if self.target is not None and (y := self.label(values.pop(self.target, None))) is not None:
                body.setdefault("y", y)
            features = self.features(values, _quoted)
        except DataError as error:
            raise RejectedError(f"{error}. These are options of the model's input: {_PUT}") from error
        if features == x:
            return False
        body["x"] = features
        return True

    # ------------------------------------------------------------------ records

    def flat(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record without ignored fields and with nested ones as ``outer.inner``."""
        for role in ("target", "id", "key", "time"):
            name = getattr(self, role)
            if name is not None and isinstance(value := record.get(name), dict):
                inner = f"{name}.{next(iter(value), 'value')}"
                raise DataError(f"the {role} {name!r} is an object; name one of its fields, such as {inner!r}")
        values = {name: value for name, value in record.items() if name not in self.ignore}
        nested = next((name for name, value in values.items() if isinstance(value, dict)), None)
        if nested is None:
            return values
        if not self.flatten:
            raise DataError(f"column {nested!r} holds an object; flatten=True makes columns of its fields")
        out: dict[str, Any] = {}
        flatten(out, values, self.ignore)
        return out

    def label(self, value: Any) -> Any:
        """Return the label, None if it is unknown; a quoted number is a number, in the notation of the target."""
        name = str(self.target)
        y = _plain(name, value)
        if isinstance(y, float) and math.isinf(y):
            raise DataError(f"the target {name!r} is {y}; leave it out until it is known")
        if not isinstance(y, str):
            return y
        notation = self.notations.get(name, POINT)
        try:
            return label_of(without_unit(y, notation.unit).encode(), *notation.separators)
        except UnicodeEncodeError:
            raise DataError(f"the label {y!r} is not valid Unicode") from None

    def features(self, values: Mapping[str, Any], quote: Callable[[str, Any], str] = in_python) -> dict[str, Any]:
        """Return the features, without ignored columns and the time.

        Dates are replaced by their parts, texts by the counts of their words. `quote` writes an option in an error.
        """
        at = values.get(self.time) if self.time is not None else None
        features: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.ignore or (name == self.time and name not in self.dates):
                continue
            if name in self.dates:
                features.update(self._parts(name, value, at))
                continue
            plain, kind = _plain(name, value), self.types.get(name)
            if not isinstance(plain, str) or kind == "category":
                features[name] = plain
            elif kind == "text":
                features.update({f"{name}:{word}": count for word, count in bag_of_words(plain).items()})
            elif kind == "numeric":
                features[name] = self._number(name, plain)
            else:
                if looks_like_time(plain):
                    raise date_error(name, [plain], quote)
                if self.numbers is not None and name != self.key:
                    self.numbers.see(name, plain)
                features[name] = plain
        return features

    def _number(self, name: str, text: str) -> float | None:
        """Return the number that a text of a numeric column spells; None for NaN."""
        try:
            number = number_of(text.strip(), self.notations.get(name, POINT))
        except DataError as error:
            raise DataError(f"column {name!r}: {error}") from error
        if number is None or math.isinf(number):
            raise DataError(
                f"column {name!r} is {text[:60]!r}, which is no number, and its type is numeric; send null if it is "
                "not observed"
            )
        return None if math.isnan(number) else number

    def _parts(self, name: str, value: Any, at: Any) -> dict[str, float | str]:
        if bodies.is_absent(value):
            return {}
        try:
            return self.dates.features(name, value, at)
        except DataError as error:
            raise DataError(f"column {name!r}: {error}") from error


_EXPECTED = {
    **dict.fromkeys(("id", "key", "target", "time", "weight", "date_order"), "the name of a field"),
    **dict.fromkeys(("ignore", "mixed"), "a list of fields"),
    "flatten": "true or false",
    "dates": 'an object such as {"when": ["hour", "weekday"]}',
    "types": 'an object such as {"price": "numeric"}',
    "notations": 'an object such as {"price": [",", "."]}',
    "ask": 'an object such as {"budget": 0.05}',
}


def _check_type(name: str, value: Any) -> None:
    if not _has_type(name, value):
        raise RejectedError(f"{name} of input is {str(value)[:60]!r}, which is not {_EXPECTED[name]}")


def _has_type(name: str, value: Any) -> bool:
    if name == "flatten":
        return isinstance(value, bool)
    if name in ("ignore", "mixed"):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if name in ("dates", "types", "notations"):
        return isinstance(value, dict)
    if name == "ask":
        return isinstance(value, dict | None)
    return value is None or (isinstance(value, str) and value != "")


def _checked_kind(name: str, kind: Any) -> str:
    if kind not in TYPES:
        raise ParameterError(f"types: that of {name!r} is {str(kind)[:60]!r}; it is one of {', '.join(TYPES)}")
    return str(kind)


def _checked_notation(name: str, given: Any) -> Notation:
    """Return the notation of a field, whose separators and unit are a list."""
    listed = isinstance(given, list | tuple) and 0 < len(given) <= 3 and all(isinstance(one, str) for one in given)
    notation = Notation(*given) if listed else POINT
    if not listed or notation.decimal not in (".", ",") or notation.thousands not in {"", *THOUSANDS} - {given[0]}:
        raise ParameterError(
            f"notations: that of {name!r} is {str(given)[:60]!r}; it is a list of the separator of decimals, . or ,, "
            'that of thousands, if there is any, and the unit, such as [",", ".", "kg"]'
        )
    return notation


def _checked_policy(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a policy, with its defaults; an error names a parameter that does not exist."""
    known = AskPolicy().params
    for name in options:
        if name not in known:
            raise ParameterError(f"ask has no field {name!r}{nearest(name, known)}; there are {', '.join(known)}")
    return AskPolicy(**options).params


def _quoted(option: str, value: Any) -> str:
    """Write an option as in the JSON of a request."""
    return f"{json.dumps(option)}: {json.dumps(value, ensure_ascii=False)}"


def _plain(name: str, value: Any) -> Any:
    """Convert a value for storage: what `run` reads as absent becomes None."""
    if isinstance(value, list):
        raise DataError(
            f"column {name!r} holds a list; a value is a number, a string or null: leave it out, ignore=[{name!r}] "
            f"(--ignore {name})"
        )
    return None if bodies.is_absent(value) else value
