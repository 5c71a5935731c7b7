"""Options of a command from four places: the command line, environment variables, a TOML file, defaults."""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from varifold.base.json_text import write_json
from varifold.base.nearest import nearest
from varifold.errors import ParameterError

PREFIX = "VARIFOLD_"


class Options:
    """Options of a parser and where their values come from; made after all of them are declared.

    The defaults move from the parser to this object, so that an option that was not given is None.
    """

    def __init__(self, parser: argparse.ArgumentParser, *, other: tuple[str, ...] = ()) -> None:
        self._actions = {
            action.option_strings[-1].removeprefix("--"): action
            for action in parser._actions
            if action.option_strings and action.dest not in ("help", *other)
        }
        self._defaults = {name: action.default for name, action in self._actions.items()}
        for action in self._actions.values():
            action.default = None

    def fill(self, args: argparse.Namespace, path: Path | None) -> dict[str, Any]:
        """Set every option that was not given on the command line; return the tables of the file."""
        options, tables = _read(path)
        for name in options:
            if name not in self._actions:
                raise ParameterError(f"{path}: there is no option {name!r}{nearest(name, self._actions)}")
        for name, action in self._actions.items():
            if getattr(args, action.dest) is not None:
                continue
            variable = PREFIX + name.replace("-", "_").upper()
            if variable in os.environ:
                setattr(args, action.dest, _converted(action, os.environ[variable], variable))
            elif name in options:
                setattr(args, action.dest, _converted(action, options[name], f"{path}: {name}"))
            else:
                setattr(args, action.dest, self._defaults[name])
        return tables

    def as_toml(self, args: argparse.Namespace) -> str:
        """Return the options that have a value as lines of a TOML file."""
        lines = []
        for name, action in self._actions.items():
            value = getattr(args, action.dest)
            if value is not None:
                lines.append(f"{name} = {_toml(getattr(value, 'text', value))}")
        return "\n".join(lines)


def _read(path: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a TOML file, and its tables."""
    if path is None:
        return {}, {}
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"the configuration {path} cannot be read: {error}") from error
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    return {name: value for name, value in content.items() if name not in tables}, tables


def _converted(action: argparse.Action, value: Any, where: str) -> Any:
    """Convert a value as argparse converts the text of the option."""
    if action.nargs == 0:
        if value in (True, False):
            return value
        if str(value).lower() in ("1", "true", "yes", "0", "false", "no", ""):
            return str(value).lower() in ("1", "true", "yes")
        raise ParameterError(f"{where} is {value!r}, which is not true or false")
    if isinstance(value, dict | list | bool):
        raise ParameterError(f"{where} is {value!r}; give a text or a number")
    try:
        converted = str(value) if action.type is None else action.type(str(value))  # type: ignore[operator]
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise ParameterError(f"{where} is {value!r}: {error}") from error
    if action.choices is not None and converted not in action.choices:
        raise ParameterError(f"{where} is {value!r}, which is none of {', '.join(map(str, action.choices))}")
    return converted


def _toml(value: Any) -> str:
    """Write a value as TOML; strings and inline tables are close enough to JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{write_json(k).decode()} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return write_json(str(value)).decode()


def table_as_toml(name: str, table: Mapping[str, Any]) -> str:
    """Return a table as lines of a TOML file."""
    return "\n".join([f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items() if value is not None)])
