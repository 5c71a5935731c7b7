"""Streams for the tables of this folder, all from the files in VARIFOLD_DATA.

Development streams are what defaults were chosen on; report streams were looked at once, at the end.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import varifold
from varifold import Block, datasets, streams

Make = Callable[[int], Block]
ROWS = 3000


def registered(name: str, scenario: str = "vfs:0.5", rows: int = ROWS) -> Make:
    """Return a function that permutes the rows of a registered data set and makes its features vary."""

    def make(seed: int) -> Block:
        block = datasets.load(name).block
        block = block.take(np.random.default_rng(seed).permutation(len(block))[:rows])
        return streams.prepare(block, scenario, seed=seed).block

    return make


def imdb(rows: int = ROWS, coded: float | None = 1.0) -> Make:
    """Return a function that makes a mail-like stream: the words of a review, each coded 1.0 (or its count)."""

    def make(seed: int) -> Block:
        block = datasets.load("imdb").block
        block = block.take(np.random.default_rng(seed).permutation(len(block))[:rows])
        texts = [dict.fromkeys(x, coded) if coded is not None else x for x in block.rows()]
        return varifold.to_block(texts, block.y)

    return make


def spam_words(seed: int) -> Block:
    """Make a stream of the words of spambase that occur in a mail, coded 1.0."""
    block = datasets.load("spambase").block
    block = block.take(np.random.default_rng(seed).permutation(len(block))[:ROWS])
    return varifold.to_block([{k: 1.0 for k, v in x.items() if v > 0} for x in block.rows()], block.y)


def spam_mixed(seed: int) -> Block:
    """Make a stream in which words coded 1.0, counts, dummies and measurements come together."""
    block = datasets.load("spambase").block
    block = block.take(np.random.default_rng(seed).permutation(len(block))[:ROWS])
    rows = []
    for x in block.rows():
        names = list(x)
        row: dict[Any, float] = {k: 1.0 for k in names[:20] if x[k] > 0}
        row.update({k: float(1 + int(x[k])) for k in names[20:35] if x[k] > 0})
        row.update({k: float(x[k] > 0) for k in names[35:48]})
        row.update({k: x[k] for k in names[48:]})
        rows.append(row)
    return varifold.to_block(rows, block.y)


def with_outliers(name: str) -> Make:
    """Return a function that makes one percent of a set's values +-10^6."""

    def make(seed: int) -> Block:
        rng = np.random.default_rng(seed)
        block = registered(name)(seed)
        rows = [{k: rng.choice([-1e6, 1e6]) if rng.random() < 0.01 else v for k, v in x.items()} for x in block.rows()]
        return varifold.to_block(rows, block.y)

    return make


# ---------------------------------------------------------------- natural streams


def table(name: str) -> Iterator[dict[str, str]]:
    path = Path(os.environ["VARIFOLD_DATA"]) / "natural" / f"{name}.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        yield from csv.DictReader(file)


def value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def labelled(name: str, label: str, without: tuple[str, ...], rows: int, start: int, every: int = 1) -> Block:
    """Read rows of a table; an empty cell is absent, and a cell that is no number is a category."""
    found, y = [], []
    for i, row in enumerate(table(name)):
        if i < start or (i - start) % every or row[label] in ("", "NA"):
            continue
        if len(found) == rows:
            break
        y.append(row[label])
        found.append({k: value(v) for k, v in row.items() if k != label and k not in without and v not in ("", "NA")})
    return varifold.to_block(found, y)


def weather(rows: int = 6000) -> Make:
    return lambda seed: labelled("weather_aus", "RainTomorrow", ("Date",), rows, 20_000 * seed, 5)


def nhanes(rows: int = 6000) -> Make:
    return lambda seed: labelled("nhanes", "Diabetes", ("ID", "DiabetesAge"), rows, 7000 * seed)


def football(rows: int = 6000) -> Make:
    return lambda seed: labelled("football_odds", "FTR", ("date",), rows, 10_000 + 12_000 * seed, 2)


def icu(rows: int = 4000) -> Make:
    """Return a function that makes an instance per patient: the last value of each measurement."""

    def make(seed: int) -> Block:
        found: list[dict[str, float]] = []
        y: list[str] = []
        patient, patients = "", -1
        for row in table("physionet2012_hourly"):
            if row["patient"] != patient:
                patient = row["patient"]
                patients += 1
                if patients >= rows * (seed + 1):
                    break
                if patients >= rows * seed:
                    found.append({})
                    y.append(row["death"])
            if patients >= rows * seed:
                found[-1].update(
                    {k: float(v) for k, v in row.items() if v != "" and k not in ("patient", "hour", "death")}
                )
        return varifold.to_block(found, y)

    return make


def pedestrians(sensor: str = "s9", ahead: int = 3, rows: int = 5000) -> Make:
    """Return a function that makes a regression stream: a sensor's count some hours ahead, from all counts now."""

    def make(seed: int) -> Block:
        rows_all = []
        for i, row in enumerate(table("melbourne_pedestrians")):
            if i >= 9000 * seed:
                hour = row["t"][11:13]
                rows_all.append(({k: float(v) for k, v in row.items() if k != "t" and v != ""}, hour))
            if len(rows_all) == rows + ahead:
                break
        found = [
            ({**x, "hour": f"h{hour}"}, later[sensor])
            for (x, hour), (later, _) in zip(rows_all, rows_all[ahead:], strict=False)
            if sensor in later
        ]
        return varifold.to_block([x for x, _ in found], [t for _, t in found], numeric=True)

    return make


def abalone(seed: int) -> Block:
    block = datasets.load("abalone").block
    block = block.take(np.random.default_rng(seed).permutation(len(block))[:ROWS])
    rng = np.random.default_rng(seed + 1)
    rows = [{k: v for k, v in x.items() if rng.random() < 0.7} for x in block.rows()]
    return varifold.to_block(rows, [float(t) for t in block.y], numeric=True)


DEVELOPMENT: dict[str, Make] = {
    "imdb, words 1.0": imdb(),
    "imdb, counts": imdb(coded=None),
    "spambase, words 1.0": spam_words,
    "spambase, mixed": spam_mixed,
    **{f"{name}": registered(name) for name in ("spambase", "wdbc", "magic04", "a8a", "svmguide3", "kr-vs-kp")},
    "german, outliers": with_outliers("german"),
    "splice-3class": registered("splice-3class"),
    "frogs": registered("frogs"),
    "spambase, trapezoidal": registered("spambase", "trapezoidal"),
    "weather": weather(),
    "nhanes": nhanes(),
    "icu": icu(),
    "football": football(),
}
REPORT: dict[str, Make] = {
    "imdb, words 1.0": imdb(),
    "imdb, counts": imdb(coded=None),
    **{
        f"{name}": registered(name)
        for name in ("ionosphere", "australian", "wbc", "wpbc", "dna", "diabetes", "credit-a", "dropout", "drybean")
    },
    "svmguide3, outliers": with_outliers("svmguide3"),
    "electricity": registered("electricity-5000", "trapezoidal"),
    "weather": weather(),
    "nhanes": nhanes(),
    "icu": icu(),
    "football": football(),
}
NATURAL = ("weather", "nhanes", "icu", "football", "pedestrians")  # by seed other rows; few seeds give rows


def seeds(stream: str, report: bool) -> list[int]:
    """Return the seeds of a stream: of development, or those reported."""
    first = int(report)
    return [first] if stream in NATURAL or stream.startswith("imdb") else [first, first + 10, first + 20]


REGRESSION: dict[str, Make] = {"pedestrians": pedestrians(), "abalone": abalone}
