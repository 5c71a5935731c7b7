"""Command line. A subcommand is a module with ``add_parser(subparsers)`` and ``run(args) -> int``.

The top layer: it may import everything, and nothing imports it. A command imports what it needs when it runs.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from varifold.base.nearest import nearest
from varifold.cli.output import VisibleOutput, visible
from varifold.errors import ParameterError, UnknownNameError, VarifoldError

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

COMMANDS = [
    "run",
    "models",
    "scenarios",
    "inspect",
    "report",
    "explain",
    "predict",
    "detect",
    "serve",
    "backup",
    "restore",
    "follow",
    "watch",
    "data",
    "bench",
    "demo",
]
"""Modules of this package, in the order of --help."""

USAGE, DATA = 2, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit code: 0 success, 1 a problem with the data, 2 wrong usage."""
    if argv is None:
        sys.excepthook = _one_line
        if sys.stdout.isatty():
            sys.stdout = VisibleOutput(sys.stdout)
        warnings.showwarning = _show_once(set())
        argv = sys.argv[1:]
    try:
        code = _dispatch(list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DATA
    except KeyboardInterrupt:
        return _complain("stopped", 130)
    except (UnknownNameError, ParameterError) as error:
        return _complain(str(error), USAGE)
    except VarifoldError as error:
        return _complain(str(error), DATA)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _complain(f"{name}{error.strerror or error}", DATA)
    return code


def _show_once(shown: set[str]) -> Any:
    """Return a function that prints each warning once, also if a file is read several times."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if (text := _line(str(message))) not in shown:
            shown.add(text)
            print(text, file=sys.stderr)

    return show


def _dispatch(arguments: list[str]) -> int:
    arguments = arguments or ["--help"]
    named = arguments[0] if not arguments[0].startswith("-") else None
    if named is not None and named not in COMMANDS:
        raise UnknownNameError(f"there is no command {named!r}{nearest(named, COMMANDS)}")
    # do not import what only the other commands need
    modules = {name: importlib.import_module(f"varifold.cli.{name}") for name in ([named] if named else COMMANDS)}
    parser, commands = _parsers(modules)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        used = _used(commands[args.command], args)
        name = used.prog.removeprefix(f"{parser.prog} ")
        return _complain(f"{name} does not know {unknown[0]!r}{_hint(used, arguments, unknown[0])}", USAGE)
    code: int = modules[args.command].run(args)
    return code


def _hint(parser: argparse.ArgumentParser, arguments: list[str], unknown: str) -> str:
    """Guess what an argument that the parser does not know was meant to be."""
    options = {o: str(action.metavar) for action in parser._actions for o in action.option_strings}
    option, value = ["", "", *arguments][(at := arguments.index(unknown)) : at + 2]
    if options.get(option, "").endswith(",...") and not unknown.startswith("-"):
        return f"; did you mean {option} {value},{unknown}?"
    if parser.prog.endswith(" follow") and os.path.isfile(unknown):
        return f"; it reads standard input: varifold follow ... < {unknown}"
    return nearest(unknown, list(options))


def _used(parser: argparse.ArgumentParser, args: argparse.Namespace) -> argparse.ArgumentParser:
    """Return the parser of the innermost command: for ``bench run`` that of run."""
    for action in parser._actions:
        choice = getattr(args, action.dest, None)
        if isinstance(action.choices, dict) and choice in action.choices:
            return _used(action.choices[choice], args)
    return parser


def _parsers(modules: dict[str, ModuleType]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    import argparse

    from varifold import __version__

    class Parser(argparse.ArgumentParser):
        """Accepts no abbreviated options and reports a wrong one in one line."""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options, allow_abbrev=False)

        def error(self, message: str) -> None:  # type: ignore[override]
            raise ParameterError(f"{message} (see {self.prog} --help)")

    parser = Parser(
        prog="varifold",
        description="Learn, one instance at a time, from streams whose features appear and vanish.",
    )
    parser.add_argument("--version", action="version", version=f"varifold {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for module in modules.values():
        module.add_parser(subparsers)
    return parser, dict(subparsers.choices)


def _complain(message: str, code: int) -> int:
    print(_line(message), file=sys.stderr)
    return code


def _line(message: str) -> str:
    return "varifold: " + visible(re.sub(r"\s+", " ", message))


def _one_line(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """Report an unexpected error in one line; VARIFOLD_TRACEBACK=1 shows the traceback."""
    if os.environ.get("VARIFOLD_TRACEBACK"):
        sys.__excepthook__(kind, error, error.__traceback__)
        return
    _complain(f"unexpected {kind.__name__}: {error} (VARIFOLD_TRACEBACK=1 shows where)", DATA)
