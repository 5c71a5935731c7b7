"""Pages that follow from the code: the command line, the methods, the scenarios and the API.

They are written into docs/reference before the site is built, so that none of them can grow stale.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import varifold
from varifold import cli
from varifold.base.registry import detectors, models, transformers
from varifold.datasets.synthetic import synthetic
from varifold.streams import prepare, scenarios
from varifold.streams.presence import presence

MODULES = {
    "Evaluate": ["varifold.evaluate"],
    "Streams and data sets": ["varifold.streams", "varifold.datasets"],
    "Checks": ["varifold.checks"],
    "The papers' tables": ["varifold.bench"],
}
"""Heading of the API -> modules whose `__all__` is listed under it."""

OPTIONAL = {
    "Drift": "varifold.drift",
    "Monitor": "varifold.monitor",
    "Which labels to request": "varifold.ask",
    "scikit-learn": "varifold.sklearn",
    "MLflow": "varifold.mlflow",
    "Merging": "varifold.ensemble.merging",
    "Spark": "varifold.spark",
}
"""Heading -> a separate module."""


def write(folder: Path) -> None:
    """Write every generated page below `folder`/reference."""
    made = folder / "reference"
    made.mkdir(exist_ok=True)
    _keep(made / "command-line.md", command_line())
    _keep(made / "methods.md", methods())
    _keep(made / "scenarios.md", scenario_page(made))
    _keep(made / "api.rst", api())
    _keep(made / "citing.md", citing())
    for name, text in results(folder.parent / "benchmarks" / "RESULTS.md").items():
        (made / "results").mkdir(exist_ok=True)
        _keep(made / "results" / f"{name}.md", text)


def _keep(path: Path, text: str) -> None:
    """Write only what changed, so that an unchanged page is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- command line


def command_line() -> str:
    """Every command with its options, from the parser itself."""
    commands = {name: importlib.import_module(f"varifold.cli.{name}") for name in cli.COMMANDS}
    _, parsers = cli._parsers(commands)
    lines = ["# Command line", "", "`varifold COMMAND --help` prints the same.", ""]
    for name, parser in parsers.items():
        lines += _command(f"varifold {name}", parser, 2)
    return "\n".join(lines)


def _command(title: str, parser: argparse.ArgumentParser, level: int) -> list[str]:
    lines = ["#" * level + f" {title}", "", _sentence(parser.description), ""]
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if nested:
        for name, inner in nested[0].choices.items():
            lines += _command(f"{title} {name}", inner, level + 1)
        return lines
    lines += ["```text", inspect.cleandoc(parser.format_usage().removeprefix("usage: ")), "```", ""]
    for group in parser._action_groups:
        actions = [a for a in group._group_actions if a.help != argparse.SUPPRESS and "--help" not in a.option_strings]
        if actions:
            lines += [f"*{group.title}*", "", *(_option(parser, action) for action in actions), ""]
    return lines


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    spelled = formatter._format_action_invocation(action)
    summary = formatter._expand_help(action) if action.help else ""
    return f"- `{spelled}`" + (f" – {_plain(summary)}" if summary else "")


def _plain(text: str) -> str:
    """Help text as Markdown: angle brackets and stars mean themselves."""
    return re.sub(r"([*<_])", r"\\\1", text)


def _sentence(text: str | None) -> str:
    return _plain(text or "")


# ---------------------------------------------------------------- methods and scenarios


def methods() -> str:
    """The registry as a table."""
    lines = [
        "---",
        "html_theme.sidebar_secondary.remove: true",
        "---",
        "# Choosing a method",
        "",
        "Start with `auto`. It runs learners of several kinds and weights each by its track record. Choose another",
        "method if one of these holds:",
        "",
        "- *Microseconds count.* `arow` costs two per instance and is a strong linear learner; `auto:budget=fast` lies",
        "  between the two.",
        "- *Every document has different words.* `nb3`, `orf3v` and `arow` read only the words that are there.",
        "- *Features replace one another at a known time.* `cwfe` and `fesl` learn the map from old to new features.",
        "- *What is missing is informative.* `ovfiv` adds a learner of absence to any other; `auto` has one built in.",
        "- *You compare with a paper.* `Method.as_in_paper()` is the method as printed, with nothing added.",
        "",
        "*Reads*: the values, which features are absent, or both. Memory grows with the features seen unless",
        "`max_features` bounds it. All methods accept labels of any hashable type and explain their predictions.",
        "",
        "::::{div} varifold-methods",
        "| name | what it is | reads | labels | cost of an instance |",
        "| --- | --- | --- | --- | --- |",
    ]
    classes = {name: models[name] for name in sorted(models.class_names().values())}
    lines += [_method(name, cls) for name, cls in classes.items()]
    lines += [
        "::::",
        "",
        "## Anomaly detectors",
        "",
        "They learn without labels; start with `autodetector`. [Anomaly detection](../detection) compares them.",
        "",
        "::::{div} varifold-methods",
        "| name | what it is | cost of an instance |",
        "| --- | --- | --- |",
    ]
    found = {name: detectors[name] for name in sorted(detectors.class_names().values())}
    lines += [_detector(name, cls) for name, cls in found.items()]
    lines += ["::::"]
    return "\n".join(lines) + "\n"


def _method(name: str, cls: type[Any]) -> str:
    traits = cls().traits
    reads = [word for word, yes in (("values", traits.uses_values), ("absence", traits.uses_absence)) if yes]
    labels = "numbers" if issubclass(cls, varifold.VaryingRegressor) else traits.multiclass
    return f"| {_named(name, cls)} | {', '.join(reads)} | {labels} | {_plain(traits.cost)} |"


def _detector(name: str, cls: type[Any]) -> str:
    return f"| {_named(name, cls)} | {_plain(cls().traits.cost)} |"


def _named(name: str, cls: type[Any]) -> str:
    """Return the name, which links to the class, and the first line of its docstring."""
    text = (inspect.getdoc(cls) or "").split("\n", 1)[0]
    return f"[`{name}`](#varifold.{cls.__name__}) | {_plain(text)}"


def results(path: Path) -> dict[str, str]:
    """Split the results by paper: one page each, and an index with what concerns all of them."""
    sections: list[list[str]] = [[]]
    fenced = False
    for line in path.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            sections.append([])
        sections[-1].append(line)
    papers: dict[str, list[list[str]]] = {}
    common: list[list[str]] = []
    for section in sections:
        paper, _, _ = section[0].removeprefix("## ").partition(", Table") if section else ("", "", "")
        tables = any(line.startswith("varifold bench run ") for line in section)
        (papers.setdefault(paper, []) if tables else common).append(section)
    names = {paper: re.sub(r"[^a-z0-9]+", "-", paper.lower()).strip("-") for paper in papers}
    pages = {}
    for paper, parts in papers.items():
        lines = [line for part in parts for line in part]
        if lines[0] == f"## {paper}":  # a survey: its section is the page
            lines = [re.sub("^##", "#", line) for line in lines]
        else:
            lines = [f"# {paper}", "", *lines]
        pages[names[paper]] = "\n".join(lines) + "\n"
    tree = ["", "```{toctree}", ":maxdepth: 2", "", *(names[paper] for paper in papers), "```", ""]
    pages["index"] = "\n".join([*(common[0] if common else []), *tree, *(line for part in common[1:] for line in part)])
    return pages


LIBRARY = """```bibtex
@software{varifold,
  author = {{The varifold developers}},
  title = {varifold: learning from streams whose features appear and vanish},
  version = {%s},
  year = {2026},
}
```"""


def citing() -> str:
    """Write BibTeX entries of the library and of every method's references, from the docstrings."""
    lines = [
        "# Citing",
        "",
        "If you use varifold in research, cite the library and the paper of the method that you use.",
        "",
        LIBRARY % varifold.__version__,
        "",
        "## The methods",
        "",
    ]
    seen: dict[tuple[str, str, str, str], list[str]] = {}
    for registry in (models, detectors, transformers):
        for name in sorted(registry.class_names().values()):
            for entry in _references(inspect.getdoc(registry[name]) or ""):
                seen.setdefault(entry, []).append(name)
    for (authors, title, place, year), names in sorted(seen.items(), key=lambda item: item[1]):
        key = f"{re.sub(r'[^a-z]', '', authors.split(' and ')[0].split()[-1].lower())}{year}{names[0]}"
        lines += [
            ", ".join(f"`{name}`" for name in names),
            "",
            f"```bibtex\n@misc{{{key},\n  author = {{{authors}}},\n  title = {{{title}}},",
            f"  howpublished = {{{place}}},\n  year = {{{year}}},\n}}\n```",
            "",
        ]
    return "\n".join(lines)


def _references(doc: str) -> list[tuple[str, str, str, str]]:
    """Return authors, title, place and year of each reference in a docstring."""
    _, _, section = doc.partition("References\n----------\n")
    text = " ".join(section.split())
    found = []
    for entry in re.split(r"(?<=\d{4})\)?\.\s+(?=[A-Z]\.[- ])", text):
        match = re.match(r"(.*?[^\W\d_]{2,})\. (.+?[^A-Z])\. (.*?((?:19|20)\d\d))", entry)
        if match:
            authors = " and ".join(part.strip() for part in match[1].replace(" et al", ", others").split(","))
            found.append((authors, match[2], match[3], match[4]))
    return found


DRAWN = {
    "vfs": "vfs:0.5",
    "delay": "delay:50",
    "labels": "labels:0.5",
    "trapezoidal": "trapezoidal:5",
    "capricious": "capricious",
    "balanced": "balanced+vfs:0.5",
    "mixed": "mixed+vfs:0.5",
    "sample": "sample:1000+vfs:0.5",
    "stretch": "vfs:0.5+stretch:1000",
}
"""How a scenario is spelled in its picture, where its name alone does not do."""


def scenario_page(folder: Path) -> str:
    """Every scenario with what it does and a picture of which features live when."""
    from varifold.report.presence import plot_presence

    lines = [
        "# Scenarios",
        "",
        "A scenario makes a fixed data set vary: `--scenario` on the command line, `varifold.streams.vary` in Python.",
        "They are joined by `+`. Below, each is drawn on a made set of 18 columns and 2,000 rows: dark where a",
        "column is present, light where it is absent.",
        "",
    ]
    for name, summary in scenarios().items():
        lines += [f"## {name}", "", _plain(summary), ""]
        spec = DRAWN.get(name, name)
        path = folder / f"scenario-{name}.png"
        if not path.exists():
            plot_presence(presence(prepare(synthetic(2000), spec).block), path, title=spec)
        lines += [f"![{spec}]({path.name})", ""]
    return "\n".join(lines)


# ---------------------------------------------------------------- API


def api() -> str:
    """Every public name, one page each, in the order in which a user meets them."""
    lines = ["API", "===", "", "Everything public. Compiled parts are described where a class uses them.", ""]
    families: dict[str, list[str]] = {}
    for registry in (models, detectors, transformers):
        for name in registry.class_names().values():
            cls = registry[name]
            families.setdefault(cls.__module__.split(".")[1], []).append(f"varifold.{cls.__name__}")
    base = [f"varifold.{name}" for name in varifold.__all__ if name not in ("__version__", "errors")]
    lines += _listed("The package", [*base, "varifold.PerKey", "varifold.linear.base.LinearClassifier"])
    for family, found in families.items():
        lines += _listed(family.replace("_", " ").capitalize(), sorted(found))
    for heading, modules in MODULES.items():
        lines += _listed(heading, [f"{module}.{name}" for module in modules for name in _public(module)])
    for heading, module in OPTIONAL.items():
        if importlib.util.find_spec(module) is not None:
            lines += _listed(heading, [f"{module}.{name}" for name in _public(module)])
    lines += _listed("The server's client", ["varifold.serve.client.RemoteClassifier"])
    lines += _listed("Errors", [f"varifold.errors.{name}" for name in varifold.errors.__all__])
    return "\n".join(lines)


def _public(module: str) -> list[str]:
    loaded: ModuleType = importlib.import_module(module)
    return [
        name for name in loaded.__all__ if inspect.isclass(getattr(loaded, name)) or callable(getattr(loaded, name))
    ]


def _listed(heading: str, names: list[str]) -> list[str]:
    table = [".. autosummary::", "   :toctree: generated", "   :nosignatures:", "", *(f"   {name}" for name in names)]
    return [heading, "-" * len(heading), "", *table, ""]
