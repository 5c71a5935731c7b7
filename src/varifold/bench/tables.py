"""Read tables from TOML: those of the papers (``specs/*.toml``), of installed packages, and of users."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, get_type_hints

from varifold.base.nearest import nearest
from varifold.base.plugins import entry_points_of, from_entry_point
from varifold.base.spec import append_parameters
from varifold.bench.published import read_published
from varifold.bench.table import COLUMNS, Data, Method, Remark, Setting, Table, Variant
from varifold.datasets import registry
from varifold.datasets.own import is_own
from varifold.errors import DataError, UnknownNameError
from varifold.evaluate import METRICS, REGRESSION_METRICS

__all__ = ["GROUP", "find_table", "find_tables", "leaderboards", "table_names", "tables"]


def _spread(raw: Any, grid: dict[str, list[Any]] | None) -> tuple[str, ...]:
    """Return the candidates of a method: a specification, several, or one with a grid of parameters."""
    texts = (raw,) if isinstance(raw, str) else tuple(raw)
    if not grid:
        return texts
    settings = [",".join(f"{k}={v}" for k, v in zip(grid, values, strict=True)) for values in product(*grid.values())]
    return tuple(append_parameters(text, setting) for text in texts for setting in settings)


def _method(raw: dict[str, Any]) -> Method:
    raw = dict(raw)
    default = _spread(raw.pop("default"), None)
    given = raw.pop("paper", default)
    paper = _spread(given, raw.pop("grid", None))
    searched = {setting: _spread(given, grid) for setting, grid in raw.pop("grids", {}).items()}
    return Method(
        name=raw.pop("name"),
        group=raw.pop("group", ""),
        default=default,
        paper=paper,
        by_setting=searched,
        **raw,
    )


def _variant(raw: dict[str, Any]) -> Variant:
    lists = {name: tuple(raw.get(name, ())) for name in ("methods", "data")}
    return Variant(**{**raw, **lists})


def _setting(raw: dict[str, Any]) -> Setting:
    return Setting(**{"title": raw["name"], **raw})


def _data(raw: dict[str, Any]) -> Data:
    return Data(**{"load": raw["name"].lower(), **raw})


def table_from(name: str, raw: dict[str, Any], folder: Path | None = None) -> Table:
    """Make a table of the content of its TOML file; printed numbers are in the package, or in a folder."""
    raw = dict(raw)
    printed = tuple(read_published(raw.pop("published"), folder)) if "published" in raw else ()
    printed = tuple(replace(cell, repeats=raw["repeats"]) for cell in printed)
    as_paper = ("paper", "grid", "grids", "by_data", "gap", "gaps")
    is_of_paper = bool(printed) or any(key in method for method in raw.get("method", ()) for key in as_paper)
    metrics = tuple(raw.pop("metrics", dict.fromkeys(p.metric for p in printed))) or ("cer",)
    return Table(
        name=name,
        settings=tuple(map(_setting, raw.pop("setting", []))),
        data=tuple(map(_data, raw.pop("data", []))),
        methods=tuple(map(_method, raw.pop("method", []))),
        metrics=metrics,
        published=printed,
        notes=tuple(raw.pop("notes", ())),
        also=(*raw.pop("also", ()), *raw.get("also_as", {})),
        shown=tuple(raw.pop("columns", COLUMNS if is_of_paper else ("default",))),
        variants=tuple(map(_variant, raw.pop("variant", ()))),
        doubts=tuple(Remark(**doubt) for doubt in raw.pop("doubt", ())),
        reasons=tuple(Remark(**reason) for reason in raw.pop("reason", ())),
        **raw,
    )


GROUP = "varifold.tables"
"""Entry points of this group name attributes with the path of a TOML file: tables of third parties."""
_ORDER = ("olvf", "ovfm", "orf3v", "cwfe", "ovfiv", "survey")


@cache
def tables() -> dict[str, Table]:
    """Return the tables of the package, in the order of the papers."""
    of_package = _of_package("specs")
    return {name: of_package[name] for name in sorted(of_package, key=lambda n: _ORDER.index(n.partition("-")[0]))}


@cache
def leaderboards() -> dict[str, Table]:
    """Return the tables of the package that are of no paper: learners of any library on the same streams."""
    return _of_package("specs", "leaderboards")


def _of_package(*folder: str) -> dict[str, Table]:
    """Read the tables in a folder of the package, in the order of their names."""
    specs = resources.files("varifold.bench").joinpath(*folder)
    names = sorted(f.name.removesuffix(".toml") for f in specs.iterdir() if f.name.endswith(".toml"))
    return {n: table_from(n, tomllib.loads(specs.joinpath(f"{n}.toml").read_text(encoding="utf-8"))) for n in names}


def table_names() -> list[str]:
    """Return the names of the tables of the package."""
    return [*tables(), *leaderboards()]


def find_tables(name: str) -> list[Table]:
    """Find the tables of a name: ``natural`` and ``olvf`` are all whose names begin so, ``all`` those of the papers."""
    if name == "all":
        return list(tables().values())
    together = [table for each, table in (tables() | leaderboards()).items() if each.startswith(f"{name}-")]
    return together or [find_table(name)]


def find_table(name: str) -> Table:
    """Find a table by name: of the package, of an installed package, or a TOML file."""
    known = tables() | leaderboards()
    if name in known:
        return known[name]
    if name in entry_points_of(GROUP):
        return _from_file(Path(from_entry_point(GROUP, name)), name)
    if name.endswith(".toml"):
        return _from_file(Path(name), Path(name).stem)
    raise UnknownNameError(
        f"there is no table {name!r}{nearest(name, known)} (`varifold bench list` shows all; one of your own is a file "
        "NAME.toml)"
    )


def _from_file(path: Path, name: str) -> Table:
    """Read a user's table; errors in its file are reported with its name."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        given = {"paper": name, "title": name, "caption": "all methods on the same streams", "repeats": 1, **raw}
        _check_parts(given)
        return table_from(name, given, path.parent)
    except OSError as error:
        raise DataError(f"the table {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, DataError, UnknownNameError) as error:
        raise DataError(f"{path} is no table: {error}; docs/own.md shows one") from error
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is no table: an entry has a value of the wrong type ({error})") from error


_NEEDED = {"setting": ("name", "scenario"), "data": ("name",), "method": ("name", "default")}
"""Required entries of each part of a table's file."""
_KNOWN = sorted({*METRICS, *REGRESSION_METRICS, "seconds"})
"""Metrics that a table can show."""
_PARTS: dict[str, type[Any]] = {"setting": Setting, "data": Data, "method": Method, "variant": Variant}
_KINDS: dict[Any, tuple[type, str]] = {
    str: (str, "text"),
    str | None: (str, "text"),
    bool: (bool, "true or false"),
    bool | None: (bool, "true or false"),
    int: (int, "a whole number from 1 on"),
    int | None: (int, "a whole number from 1 on"),
}


def _check_parts(raw: dict[str, Any]) -> None:
    """Raise an error for a table without settings, data sets or methods, and for parts without required entries."""
    for part, needed in _NEEDED.items():
        given = raw.get(part)
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            raise DataError(f"it needs at least one [[{part}]]")
        for number, each in enumerate(given, 1):
            missing = next((name for name in needed if name not in each), None)
            if missing is not None:
                raise DataError(f"[[{part}]] number {number} has no {missing}")
    _check_values(Table, raw, "")
    for name in ("metrics", "notes", "also", "columns"):
        _check_texts(name, raw.get(name, []))
    unknown = next((name for name in raw.get("metrics", []) if name not in _KNOWN), None)
    if unknown is not None:
        raise DataError(f"there is no metric {unknown!r}{nearest(unknown, _KNOWN)}")
    for part, cls in _PARTS.items():
        given = raw.get(part, [])
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise DataError(f"{part} must be written as [[{part}]]. Got {given!r} instead")
        for number, each in enumerate(given, 1):
            _check_values(cls, each, f" of [[{part}]] number {number}")
    for data in map(_data, raw["data"]):
        if not is_own(data.load) and not data.load.startswith("made:"):
            registry.find(data.load)


def _check_texts(name: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DataError(f"{name} must be a list of texts. Got {value!r} instead")


_ENTRIES: dict[type[Any], tuple[str, ...]] = {
    Table: ("setting", "data", "method", "variant", "doubt", "reason", "columns"),
    Method: ("grid", "grids"),
}
"""Entries of the file that are no fields of the class."""
_MAPPINGS = ("also_as", "by_data", "gaps", "grid", "grids", "models", "scenarios")


def _check_values(cls: type[Any], raw: dict[str, Any], where: str) -> None:
    """Raise an error for an unknown entry, a value of the wrong type, and for counts below 1."""
    types = get_type_hints(cls)
    known = sorted({*types, *_ENTRIES.get(cls, ())})
    for name, value in raw.items():
        if name not in known:
            raise DataError(f"there is no entry {name!r}{where}{nearest(name, known)}")
        if name in _MAPPINGS and not isinstance(value, dict):
            raise DataError(f"{name}{where} must be written as {{ key = value }}. Got {value!r} instead")
        kind, words = _KINDS.get(types.get(name), (None, ""))
        if kind is None:
            continue
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits or (kind is int and value < 1):
            raise DataError(f"{name}{where} must be {words}. Got {value!r} instead")
