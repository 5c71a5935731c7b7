"""A table of a paper as data: what to run, how, and the printed numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from varifold.base.spec import append_parameters
from varifold.bench.cell import Cell
from varifold.bench.published import Published
from varifold.bench.sources import length

__all__ = [
    "COLUMNS",
    "Data",
    "Method",
    "Remark",
    "Setting",
    "Slot",
    "Table",
    "Variant",
]

COLUMNS = ("paper", "default")
"""Our two columns next to a printed cell: as in the paper, and with the library's defaults."""


@dataclass(frozen=True)
class Setting:
    """One protocol of a table: its name as in the printed numbers, and its scenario."""

    name: str
    title: str
    scenario: str
    shuffle: bool = True
    repeats: int | None = None
    """Most repeats, where more add nothing (a fixed order gives the same run each time)."""
    variant: str = ""
    """Suffix of the name of the data set."""


@dataclass(frozen=True)
class Data:
    """A data set of a table: its printed name, our name, and its particulars."""

    name: str
    load: str
    repeats: int | None = None
    """Most repeats, to limit the time of a full run."""
    before: str = ""
    """Scenario applied before the setting's, such as ``balanced``."""
    rows: int | None = None
    gap: str = ""
    """Why it cannot be run."""
    scale: str | None = None
    """Scaling in the as-paper column if it differs from the table's."""
    codes: str | None = None
    """How the as-paper column converts string columns to numbers: codes, filecodes, or none."""
    positive: str = ""
    """Label of the printed F-measures, if it is not the data set's."""
    scenarios: dict[str, str] = field(default_factory=dict)
    """Scenario by setting, in place of the setting's; variants have their own."""
    first: int | None = None
    """Only the first rows, to limit the time of a full run."""
    naive: str = ""
    """Replaces {naive} in specifications: the naive predictor of this data set, or its column."""
    title: str = ""
    """One line about the task."""
    shuffle: bool | None = None
    """Whether rows are permuted, in place of the setting's: a natural stream keeps its order."""


@dataclass(frozen=True)
class Variant:
    """Another reading of a paper's protocol, run in addition to the literal one and counted separately."""

    name: str
    why: str
    """Difference from the text, and how it relates to it."""
    scenarios: dict[str, str] = field(default_factory=dict)
    """Scenario by setting; settings without one are left out, unless there is none at all."""
    methods: tuple[str, ...] = ()
    """Methods to run; all if empty."""
    parameters: str = ""
    """``key=value,...`` set in the as-paper specification."""
    models: dict[str, str] = field(default_factory=dict)
    """Specification by method, in place of the as-paper one."""
    by_data: dict[str, dict[str, str]] = field(default_factory=dict)
    """By method: specification by "data set" or "setting/data set"."""
    data: tuple[str, ...] = ()
    """Data sets to run; all if empty."""
    repeats: int | None = None
    """Most repeats, to limit the time of a full run."""
    counted: bool = True
    """Whether its numbers are compared with the printed ones; not if it is another method."""

    def model(self, method: str, setting: str, data: str) -> str | None:
        """Return the specification in place of the as-paper one; None to keep that."""
        own = self.by_data.get(method, {})
        return own.get(f"{setting}/{data}", own.get(data, self.models.get(method)))

    def applies(self, setting: Setting, method: Method) -> bool:
        """Return whether there is such a number."""
        return (not self.scenarios or setting.name in self.scenarios) and (
            not self.methods or method.name in self.methods
        )


@dataclass(frozen=True)
class Remark:
    """A remark about printed cells: a figure that contradicts them, or why ours differ from them."""

    why: str
    data: str | list[str]
    setting: str = ""
    method: str | list[str] = ""
    metric: str = ""
    above: float | None = None
    """Only cells above this."""

    def covers(self, cell: Published) -> bool:
        """Return whether the remark is about a printed cell."""
        wanted = ((self.data, cell.data), (self.setting, cell.setting), (self.method, cell.method))
        named = all(
            not mine or theirs in ([mine] if isinstance(mine, str) else mine)
            for mine, theirs in (*wanted, (self.metric, cell.metric))
        )
        return named and (self.above is None or (cell.mean is not None and cell.mean > self.above))


@dataclass(frozen=True)
class Method:
    """A printed column: how to run it as in the paper, and with defaults; several candidates mean a search."""

    name: str
    group: str
    default: tuple[str, ...]
    paper: tuple[str, ...]
    by_data: dict[str, str | list[str]] = field(default_factory=dict)
    """As-paper specification, or several, by "data set" or "setting/data set", if the authors state one."""
    by_setting: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Candidates of a setting for which the paper searched."""
    scale: str | None = None
    intercept: bool | None = None
    repeats: int | None = None
    """Most repeats, to limit the time of a full run."""
    gap: str = ""
    """Why it is not run."""
    gaps: dict[str, str] = field(default_factory=dict)
    """Why it is not run on single data sets."""

    def candidates(self, column: str, setting: str, data: str) -> tuple[str, ...]:
        """Return the candidates of a column; the best of several is shown, as tuned on the stream."""
        if column == "default":
            return self.default
        for key in (f"{setting}/{data}", data):
            if key in self.by_data:
                parameters = self.by_data[key]
                return (parameters,) if isinstance(parameters, str) else tuple(parameters)
        return self.by_setting.get(setting, self.paper)


@dataclass(frozen=True)
class Slot:
    """Place of one of our numbers: the cells that it needs, by candidate."""

    setting: Setting
    data: Data
    method: str
    column: str
    cells: dict[str, tuple[Cell, ...]]
    gap: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a paper, or a user's study."""

    name: str
    title: str
    paper: str
    caption: str
    repeats: int
    settings: tuple[Setting, ...]
    data: tuple[Data, ...]
    methods: tuple[Method, ...]
    metrics: tuple[str, ...]
    published: tuple[Published, ...] = ()
    notes: tuple[str, ...] = ()
    scale: str = "none"
    intercept: bool = False
    also: tuple[str, ...] = ()
    relative_to: str = ""
    """Method whose time is the unit, in tables of run times."""
    parameters: str = ""
    """Another table, whose parameters this one states."""
    stand_in: str = ""
    """Why the data are not the paper's: printed numbers are then shown, but not compared."""
    own: bool = False
    leaderboard: bool = False
    """Whether its numbers are shown as a list of learners, the best first: a table of no paper."""
    detectors: bool = False
    """Whether its learners are anomaly detectors, which see no labels."""
    baseline: str = ""
    """Learner of a leaderboard from which the means of the others show their difference."""
    apart: bool = False
    """Whether its printed cells are excluded from the counts over all papers."""
    also_as: dict[str, str] = field(default_factory=dict)
    """Additional learners that have another name than their specification."""
    shown: tuple[str, ...] = COLUMNS
    """Columns that are run for each method."""
    codes: str | None = None
    """How the as-paper columns convert string columns to numbers: codes or filecodes; None keeps them."""
    variants: tuple[Variant, ...] = ()
    doubts: tuple[Remark, ...] = ()
    """Printed cells that another figure contradicts."""
    reasons: tuple[Remark, ...] = ()
    """Why ours differ from printed cells."""

    @property
    def of_a_paper(self) -> bool:
        """Return whether a paper prints numbers, parameters or learners for it; a table of one's own has none."""
        return not self.own and bool(self.published or self.parameters or "paper" in self.shown)

    def columns(self, setting: Setting, method: Method) -> tuple[str, ...]:
        """Return our columns next to a method's printed numbers in a setting."""
        if self.own:
            return ("default",)
        if method.gap:
            return ()
        return (*self.shown, *(v.name for v in self.variants if v.applies(setting, method)))

    def variant(self, column: str) -> Variant | None:
        """Return the variant of a column; None for the usual ones."""
        return next((v for v in self.variants if v.name == column), None)

    def counted(self, column: str) -> bool:
        """Return whether a column is a variant whose numbers are compared with print."""
        variant = self.variant(column)
        return variant is not None and variant.counted

    def places(self) -> Iterator[tuple[Setting, Data]]:
        """Yield the pairs of setting and data set that print has; all pairs if nothing is printed or compared."""
        printed = {(p.setting, p.data) for p in self.published}
        for setting in self.settings:
            for data in self.data:
                if not self.published or self.stand_in or (setting.name, data.name) in printed:
                    yield setting, data

    def groups(self) -> list[str]:
        """Return the groups of methods, in order; one without a name if there are only learners next to the methods."""
        return list(dict.fromkeys(m.group for m in self.methods)) or [""]

    def in_group(self, group: str) -> list[Method]:
        """Return the methods of a group."""
        return [m for m in self.methods if m.group == group]

    def seeds(self, setting: Setting, data: Data, repeats: int | None = None) -> range:
        """Return the seeds of the repeats: 0, 1, ..."""
        limits = [self.repeats if repeats is None else repeats, setting.repeats, data.repeats]
        return range(min(x for x in limits if x is not None))

    def slots(self, repeats: int | None = None) -> Iterator[Slot]:
        """Yield every number of ours, with the cells it needs."""
        if self.parameters:
            return
        printed = {(p.setting, p.data, p.method) for p in self.published}
        for setting, data in self.places():
            for method in self.methods:
                if printed and not self.stand_in and (setting.name, data.name, method.name) not in printed:
                    continue
                for column in self.columns(setting, method):
                    yield self._slot(setting, data, method, column, repeats)
            for name in self.also:
                spec = self.also_as.get(name, name)
                yield self._slot(setting, data, Method(name, "", (spec,), ()), "default", repeats)

    def _slot(self, setting: Setting, data: Data, method: Method, column: str, repeats: int | None) -> Slot:
        """Return the slot of one number: by candidate, a cell per seed; no cells if a gap prevents the run."""
        gap = data.gap or method.gap or method.gaps.get(data.name, "")
        cells = {}
        variant = self.variant(column)
        protocol = data.scenarios.get(setting.name, setting.scenario)
        replaced: tuple[str, ...] = ()
        seeds = self.seeds(setting, data, repeats)[: method.repeats]
        if variant is not None:
            protocol = variant.scenarios.get(setting.name, protocol)
            other = variant.model(method.name, setting.name, data.name)
            replaced = () if other is None else (other,)
            seeds = seeds[: variant.repeats]
            if variant.data and data.name not in variant.data:
                gap = gap or f"{variant.name} runs on {', '.join(variant.data)}"
        scenario = _filled("+".join(s for s in (data.before, protocol) if s), data, setting)
        shuffle = setting.shuffle if data.shuffle is None else data.shuffle
        for candidate in () if gap else replaced or method.candidates(column, setting.name, data.name):
            spec = candidate if variant is None else _with(candidate, variant.parameters)
            scale, overrides = self._treatment(method, data, column)
            model = _filled(spec, data, setting)
            cells[spec] = tuple(
                Cell(data.load + setting.variant, scenario, shuffle, scale, model, overrides, seed) for seed in seeds
            )
        return Slot(setting, data, method.name, column, cells, gap)

    def _treatment(self, method: Method, data: Data, column: str) -> tuple[str, str]:
        """Return the scaling of the whole set, and the overrides that disable what the paper's learners do not have."""
        positive = [f"positive={data.positive}"] if data.positive else []
        first = [f"first={data.first}"] if data.first is not None else []
        if column == "default":
            return "+".join([*first, *positive]) or "none", ""
        scale = next((s for s in (method.scale, data.scale) if s is not None), self.scale)
        codes = self.codes if data.codes is None else data.codes
        intercept = self.intercept if method.intercept is None else method.intercept
        steps = [s for s in (*first, codes, scale, *positive) if s and s != "none"]
        # without intercept there is no majority bias to turn off
        bias = ",majority_bias=False" if intercept else ""
        pure = f"scale=none,fit_intercept={intercept}{bias},calibrate=False"
        return "+".join(steps) or "none", pure


def _filled(text: str, data: Data, setting: Setting) -> str:
    """Replace {n}, {switch} and {rest} by the length of the stream, of its first and of its second half.

    {data} is the name of the data set, {naive} its naive predictor, {setting} the name of the setting.
    """
    if "{" not in text:
        return text
    n = data.rows if data.rows is not None else length(data.load)
    values = {"data": data.load, "naive": data.naive, "setting": setting.name}
    return text.format(n=n, switch=n // 2, rest=n - n // 2, **values)


def _with(text: str, parameters: str) -> str:
    """Set parameters in a specification, replacing those it has."""
    for pair in parameters.split(",") if parameters else []:
        key = pair.partition("=")[0]
        text, count = re.subn(rf"(?<=[:,]){key}=[^,]*", pair, text)
        if not count:
            text = append_parameters(text, pair)
    return text
