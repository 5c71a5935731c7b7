"""``varifold bench``: run the papers' tables and report them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from varifold.base.learner import is_detector, is_regressor
from varifold.base.nearest import nearest
from varifold.base.plugins import entry_points_of
from varifold.base.plural import plural
from varifold.base.registry import models as models_by_name
from varifold.base.spec import parse_model, regressor_for
from varifold.bench.compare import Filled, fill
from varifold.bench.provenance import code_version, current_for
from varifold.bench.runner import Progress, RunSummary, plan
from varifold.bench.runner import run as run_cells
from varifold.bench.sources import short_name
from varifold.bench.store import ResultStore
from varifold.bench.study import check_models, define, study_table
from varifold.bench.table import Table
from varifold.bench.tables import GROUP, find_table, find_tables, leaderboards, table_names, tables
from varifold.cli import source
from varifold.cli.numbers import positive
from varifold.cli.output import shorten
from varifold.cli.output import table as text_table
from varifold.cli.targets import check_picture, check_target
from varifold.errors import DataError, ParameterError, UnknownNameError

STORE = "varifold-bench.sqlite"
_EVERY = 10.0
_PRINTED = 4
"""Most tables that are printed in full; of more, only the counts."""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its subcommands."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "bench",
        help="run the papers' tables, or a comparison on your own data",
        description="Run the papers' tables again, or compare learners on your own data, and write a report.",
    )
    commands = parser.add_subparsers(dest="bench", required=True, metavar="list|run|report|statements|figures")
    listed = commands.add_parser("list", help="list the tables")
    ran = commands.add_parser("run", help="run tables, or learners on your own data")
    reported = commands.add_parser("report", help="write a report of the outcomes so far")
    claims = commands.add_parser("statements", help="test what the papers claim on the outcomes so far")
    claims.add_argument("papers", nargs="*", metavar="PAPER", help="OLVF, OVFM, ORF3V, CWFE or OVFIV (default: all)")
    claims.add_argument("--repeats", type=positive, metavar="N", help="at most N repeats (default: those of the table)")
    claims.add_argument("--older", action="store_true", help="use outcomes of other versions of the code, too")
    _add_figures(commands)
    for each in (listed, ran, reported, claims):
        each.add_argument("--store", default=STORE, metavar="FILE", help=f"file of the outcomes (default {STORE})")
    ran.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="names from `varifold bench list`, or their beginning: natural, olvf; all for those of the papers",
    )
    reported.add_argument(
        "tables", nargs="*", metavar="TABLE", help="only these tables (default: all, and your own studies)"
    )
    for each in (ran, reported):
        each.add_argument("--only", metavar="DATA,...", help="only these data sets of the tables")
        each.add_argument(
            "--method",
            action="append",
            metavar="NAME",
            help="only this learner of the tables, in any case; may be repeated",
        )
        each.add_argument(
            "--repeats",
            type=positive,
            metavar="N",
            help="at most N repeats (default: those of the table; on your own data 5, or 1 if all would be equal)",
        )
        each.add_argument("--older", action="store_true", help="use outcomes of other versions of the code, too")
        each.add_argument(
            "--models",
            metavar="MODEL,...",
            help="additional learners, or learners on your own data: auto,olvf:C=0.1,my_package:MyLearner",
        )
    ran.add_argument("--jobs", type=positive, default=1, metavar="N", help="cells to run at a time")
    ran.add_argument("--backend", metavar="NAME", help="joblib backend: loky, threading, dask, ray, ...")
    _add_own_data(ran)
    for each in (ran, reported):
        each.add_argument("--html", metavar="FILE", help="write the report as a page")
        each.add_argument("--markdown", metavar="FILE", help="write the report as Markdown")
        each.add_argument("--latex", metavar="FILE", help="write tables and statistics as LaTeX, for a paper")


def _add_figures(commands: Any) -> None:
    drawn = commands.add_parser("figures", help="draw every figure of a paper from our own runs")
    drawn.add_argument("paper", metavar="PAPER", help="olvf, ovfm, orf3v, cwfe or ovfiv")
    drawn.add_argument("--out", default=".", metavar="FOLDER", help="folder of the pictures (default: the current one)")
    drawn.add_argument("--repeats", type=positive, default=3, metavar="N", help="streams behind each curve (default 3)")
    drawn.add_argument("--format", choices=["png", "svg", "pdf"], default="png", help="format of the pictures")


def _figures(args: argparse.Namespace) -> int:
    from varifold.report.papers import figures

    Path(args.out).mkdir(parents=True, exist_ok=True)
    missing = 0
    for figure in figures(args.paper):
        path = str(Path(args.out) / f"{args.paper}-{figure.number}.{args.format}")
        check_picture(path)
        try:
            figure.draw(path, args.repeats)
        except DataError as error:  # a data set is not at hand; the other figures may need others
            missing += 1
            print(f"varifold: {figure.title}: not drawn, {error}", file=sys.stderr)
        else:
            print(f"{path}: {figure.title}")
    return 1 if missing else 0


def _add_own_data(parser: argparse.ArgumentParser) -> None:
    own = parser.add_argument_group("your own data instead of a table (with --models)")
    own.add_argument(
        "--data",
        nargs="+",
        action="extend",
        metavar="FILE|NAME",
        help="files, read in this order, or a data set by name",
    )
    own.add_argument("--target", metavar="COL", help="column of the label")
    own.add_argument(
        "--scenario", metavar="SPEC", help="how features appear and vanish, such as vfs:0.5 (default none)"
    )
    own.add_argument(
        "--shuffle",
        action=argparse.BooleanOptionalAction,
        help="permute the rows (default: those of a data set that has no natural order)",
    )
    own.add_argument("--name", metavar="NAME", help="name of the study in reports (default: made of the above)")
    own.add_argument("--plot", metavar="FILE", help="picture of every learner's error over time (png, svg or pdf)")
    source.add_reading_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    commands = {"list": _list, "run": _run, "report": _report, "statements": _statements, "figures": _figures}
    return commands[args.bench](args)


def _list(args: argparse.Namespace) -> int:
    stored: set[Any] = set()
    if Path(args.store).exists():
        with ResultStore(args.store, write=False) as store:
            stored = set(store.outcomes(current_for()))
    rows = []
    of_packages = {name: find_table(name) for name in entry_points_of(GROUP)}
    for name, table in (tables() | leaderboards() | of_packages).items():
        cells = plan([find_table(table.parameters) if table.parameters else table])
        rows.append([name, shorten(table.caption, 70), f"{len(cells):,}", f"{sum(c in stored for c in cells):,}"])
    print(text_table(["table", "", "cells", "done"], rows, left=2))
    print("\n`varifold bench run TABLE` runs what is not done yet, `varifold bench report` shows it.")
    return 0


def _run(args: argparse.Namespace) -> int:
    wanted = _wanted(args)
    _check_folders(args)
    check_picture(args.plot)
    with ResultStore(args.store) as store:
        if args.data:
            store.put_study(wanted[0].name, study_of(args))
        _announce(store, wanted, args)
        with _reporter(args.jobs) as report:
            summary = run_cells(
                wanted,
                store,
                repeats=args.repeats,
                jobs=args.jobs,
                backend=args.backend,
                older=args.older,
                progress=report,
            )
        _print_summary(summary, args.store)
        _show(store, wanted, args)
        _write(store, wanted, args)
    return 1 if summary.failures else 0


def _announce(store: ResultStore, wanted: list[Table], args: argparse.Namespace) -> None:
    """Report what will be run."""
    cells = plan(wanted, args.repeats)
    held = store.outcomes(None if args.older else current_for({cell.model for cell in cells}))
    names = ", ".join(table.name for table in wanted) if len(wanted) <= 4 else f"{len(wanted)} tables"
    added = [] if args.data or not args.models else check_models(args.models)
    with_added = f" with {', '.join(added)} and {'their' if len(wanted) > 1 else 'its'} learners" if added else ""
    todo = sum(cell not in held for cell in cells)
    models = len({cell.model for cell in cells})
    what = f"{plural(len(cells), 'cell')} ({plural(models, 'specification')} of learners)"
    print(f"{names}{with_added}: {what}, {todo:,} of them to be run", file=sys.stderr)
    first = wanted[0]
    if args.data and first.settings[0].repeats == 1 and (args.repeats or 1) > 1:
        print(
            "one repeat: rows keep their order and all values are there; --shuffle or a --scenario varies them",
            file=sys.stderr,
        )


def _show(store: ResultStore, wanted: list[Table], args: argparse.Namespace) -> None:
    """Print the tables (those of --data always, others unless they go to a file) and draw the picture of --plot."""
    filled = _filled(store, wanted, args)
    if args.data or not (args.html or args.markdown or args.latex):
        from varifold.report.markdown import plain, plain_summary

        print(plain_summary(filled) if len(filled) > _PRINTED else "\n\n".join(plain(one) for one in filled))
    if args.plot:
        from varifold.report.comparison import plot_comparison

        plot_comparison(filled[0], args.plot)
        print(f"picture written to {args.plot}", file=sys.stderr)


def _report(args: argparse.Namespace) -> int:
    _check_folders(args)
    with ResultStore(args.store, write=False) as store:
        studies = {name: study_table(name, raw) for name, raw in store.studies().items()}
        if args.tables:
            wanted = [t for name in args.tables for t in ([studies[name]] if name in studies else find_tables(name))]
        else:
            wanted = [*tables().values(), *studies.values()]
        wanted = _with_models(_narrowed(wanted, args.only, args.method), args.models)
        if not (args.html or args.markdown or args.latex):
            args.html = "varifold-bench.html"
        _write(store, wanted, args)
    return 0


def _statements(args: argparse.Namespace) -> int:
    """Print a grid of claims for each paper."""
    from varifold.report.markdown import pipe_table
    from varifold.report.statements import statement_counts, statement_grids

    papers = {table.paper.lower(): table.paper for table in tables().values()}
    for name in args.papers:
        if name.lower() not in papers:
            raise UnknownNameError(f"there is no paper {name!r}{nearest(name.lower(), list(papers))}")
    chosen = {papers[name.lower()] for name in args.papers} or set(papers.values())
    with ResultStore(args.store, write=False) as store:
        filled = _filled(store, [table for table in tables().values() if table.paper in chosen], args)
    for paper, grid in statement_grids(filled).items():
        print("\n".join([paper, "", *pipe_table(grid, "claim"), ""]))
    print(statement_counts(filled))
    return 0


def _wanted(args: argparse.Namespace) -> list[Table]:
    if bool(args.tables) == bool(args.data):
        raise ParameterError("bench run needs TABLE names (`varifold bench list`), or --data with --models")
    if args.data:
        return [study_table("", study_of(args))]
    for option in ("target", "scenario", "shuffle", "name", "plot"):
        if getattr(args, option) is not None:
            raise ParameterError(f"--{option} is for your own data (--data); a table has its own")
    if reading := source.reading_options(args):
        raise ParameterError(f"--{next(iter(reading)).replace('_', '-')} is for files (--data); a table has its own")
    named = list({t.name: t for name in args.tables for t in find_tables(name)}.values())
    names = {t.name for t in named}
    needed = [find_table(t.parameters) for t in named if t.parameters and t.parameters not in names]
    order = table_names()
    ordered = sorted([*needed, *named], key=lambda t: order.index(t.name) if t.name in order else len(order))
    wanted = _narrowed(ordered, args.only, args.method)
    return _with_models(wanted, args.models)


def study_of(args: argparse.Namespace) -> dict[str, Any]:
    """Define a study from the command line."""
    if not args.models:
        raise ParameterError("--data needs --models: which learners are to be compared?")
    return define(
        args.data,
        args.target,
        args.models,
        args.scenario or "none",
        args.repeats or 5,
        args.name,
        reading=source.reading_options(args),
        shuffle=args.shuffle,
    )


def _with_models(wanted: list[Table], models: str | None) -> list[Table]:
    """Add learners to the tables; to a leaderboard those of its task, regressors by the name of the method."""
    if not models:
        return wanted
    added = check_models(models)
    fitting = {table.name: _of_task(table, added) for table in wanted}
    for text in added:
        if not any(text in each for each in fitting.values()):
            raise ParameterError(
                f"{text} fits none of these tables: labels need a classifier, numbers a regressor, anomalies a detector"
            )
    return [
        table if table.own else replace(table, also=tuple(dict.fromkeys([*table.also, *fitting[table.name].values()])))
        for table in wanted
    ]


def _of_task(table: Table, added: list[str]) -> dict[str, str]:
    """Return the learners that can run on a table; on a leaderboard of numbers the regressor of a method's name."""
    if not table.leaderboard:
        return {text: text for text in added}
    specs = {text: parse_model(text, imports=True, detectors=True) for text in added}
    specs = {text: spec for text, spec in specs.items() if is_detector(spec.cls) == table.detectors}
    if table.detectors:
        return {text: text for text in specs}
    if table.metrics[0] != "mae":
        return {text: text for text, spec in specs.items() if not is_regressor(spec.cls)}
    fitting = {t: s for t, s in specs.items() if is_regressor(s.cls) or f"{s.name}regressor" in models_by_name}
    return {text: regressor_for(spec).text for text, spec in fitting.items()}


def _narrowed(wanted: list[Table], only: str | None, methods: list[str] | None = None) -> list[Table]:
    """Restrict the tables to these data sets and learners."""
    if methods:
        everyone = {name for table in wanted for name in [*(m.name for m in table.methods), *table.also]}
        chosen_names = {name.lower() for name in methods}
        for name in methods:
            if name.lower() not in {each.lower() for each in everyone}:
                raise UnknownNameError(f"no learner {name!r} in these tables{nearest(name, sorted(everyone))}")
        wanted = [_with_methods(table, chosen_names) for table in wanted]
        wanted = [table for table in wanted if table.methods or table.also]
    if not only:
        return wanted
    names = [name.strip().lower() for name in only.split(",")]
    known = {d.name.lower() for table in wanted for d in table.data}
    for name in names:
        if name not in known:
            raise UnknownNameError(f"no data set {name!r} in these tables{nearest(name, sorted(known))}")
    chosen = [replace(table, data=tuple(d for d in table.data if d.name.lower() in names)) for table in wanted]
    return [table for table in chosen if table.data] if any(table.leaderboard for table in chosen) else chosen


def _with_methods(table: Table, names: set[str]) -> Table:
    """Keep the learners of these names, in lower case: methods of the table, and those that are run next to them."""
    methods = tuple(method for method in table.methods if method.name.lower() in names)
    return replace(table, methods=methods, also=tuple(name for name in table.also if name.lower() in names))


def _check_folders(args: argparse.Namespace) -> None:
    for path in (args.store, args.html, args.markdown, args.latex):
        check_target(path)


def _filled(store: ResultStore, wanted: list[Table], args: argparse.Namespace) -> list[Filled]:
    """Fill the tables with their outcomes; learners named in a store are not imported for a report."""
    imported = {cell.model for cell in plan(wanted, args.repeats)} if args.bench == "run" else ()
    outcomes = store.outcomes(None if args.older else current_for(imported))
    failures = store.failures()
    return [fill(table, outcomes, failures, args.repeats) for table in wanted]


def _write(store: ResultStore, wanted: list[Table], args: argparse.Namespace) -> None:
    if not (args.html or args.markdown or args.latex):
        return
    filled = _filled(store, wanted, args)
    code = None if args.older else code_version()
    environments = [e for e in store.environments() if code is None or e[0]["code"] == code]
    if args.html:
        from varifold.report.page import page

        Path(args.html).write_text(page(filled, environments), encoding="utf-8")
        print(f"page written to {args.html}", file=sys.stderr)
    if args.markdown:
        from varifold.report.markdown import markdown

        Path(args.markdown).write_text(markdown(filled, environments), encoding="utf-8")
        print(f"Markdown written to {args.markdown}", file=sys.stderr)
    if args.latex:
        from varifold.report.latex import latex

        Path(args.latex).write_text(latex(filled), encoding="utf-8")
        print(f"LaTeX written to {args.latex}", file=sys.stderr)


def _print_summary(summary: RunSummary, store: str) -> None:
    for text, reason in summary.unknown.items():
        print(f"left out: {text} ({reason})", file=sys.stderr)
    reasons: dict[str, int] = {}
    for cell, reason in summary.failures.items():
        line = f"{cell.model} on {short_name(cell.data)}, {cell.scenario}: {reason}"
        reasons[line] = reasons.get(line, 0) + 1
    for line, count in reasons.items():
        print(f"failed ({count}): {line}", file=sys.stderr)
    print(
        f"{plural(summary.ran, 'cell')} run in {_duration(summary.seconds)}, {summary.already:,} were done, "
        f"{len(summary.failures):,} failed; kept in {store}",
        file=sys.stderr,
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


@contextmanager
def _reporter(jobs: int) -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar if there is a terminal and rich is installed, else print a line from time to time."""
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar
        except ImportError:
            pass
        else:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}  {task.description}"))
            with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
                task = bar.add_task("", total=None, left="")

                def show(p: Progress) -> None:
                    bar.update(task, completed=p.done, total=p.total, left=_left(p), description=_where(p))

                yield show
            return
    yield _lines()


def _lines() -> Callable[[Progress], None]:
    last = monotonic()

    def show(p: Progress) -> None:
        nonlocal last
        if monotonic() - last >= _EVERY or p.done == p.total:
            last = monotonic()
            print(f"{p.done:,} of {plural(p.total, 'cell')}, {_left(p)}; {_where(p)}", file=sys.stderr, flush=True)

    return show


def _left(p: Progress) -> str:
    return "" if p.left is None else f"{_duration(p.left)} left"


def _where(p: Progress) -> str:
    return shorten(f"{p.cell.model} on {short_name(p.cell.data)}, {p.cell.scenario}", 70)
