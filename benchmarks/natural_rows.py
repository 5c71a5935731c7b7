"""Natural streams of VARIFOLD_DATA: features that appear and vanish by themselves, as rows for the other scripts.

A stream is a list of (instance, target) in its original order. `start` and `stop` cut it by rows, so that choices are
made on a part and reported on another.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

Rows = list[tuple[dict[str, Any], Any]]


def records(name: str, start: int, stop: int | None) -> Iterator[dict[str, str]]:
    """Read a file's rows as dicts of strings; an empty string is absent."""
    path = Path(os.environ["VARIFOLD_DATA"]) / "natural" / f"{name}.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        yield from islice(csv.DictReader(file), start, stop)


def value(cell: str) -> float | str:
    """Return a cell as a number if it is one."""
    try:
        return float(cell)
    except ValueError:
        return cell


def instance(record: dict[str, str], *without: str) -> dict[str, Any]:
    return {name: value(cell) for name, cell in record.items() if cell and name not in without}


# ---------------------------------------------------------------- numbers


def pedestrians(sensor: str, hours: int = 1) -> Callable[[int, int | None], Rows]:
    """Predict a sensor's count some hours ahead, from all counts of an hour and the time of day and week."""

    def make(start: int, stop: int | None) -> Rows:
        from datetime import datetime

        hourly = list(records("melbourne_pedestrians", start, stop))
        rows: Rows = []
        for now, later in zip(hourly, hourly[hours:], strict=False):
            if later[sensor]:
                at = datetime.fromisoformat(later["t"])
                clock = {"hour": float(at.hour), "weekday": float(at.weekday())}
                rows.append(({**instance(now, "t"), **clock}, float(later[sensor])))
        return rows

    return make


def weather_number(target: str) -> Callable[[int, int | None], Rows]:
    """Predict a measurement of the same day and station from the others."""

    def make(start: int, stop: int | None) -> Rows:
        found = records("weather_aus", start, stop)
        hidden = ("Date", target, "RainTomorrow")
        return [(instance(r, *hidden), float(r[target])) for r in found if r[target]]

    return make


def tomorrow(target: str) -> Callable[[int, int | None], Rows]:
    """Predict tomorrow's measurement of a station from today's."""

    def make(start: int, stop: int | None) -> Rows:
        waiting: dict[str, dict[str, Any]] = {}
        rows: Rows = []
        for r in records("weather_aus", start, stop):
            before = waiting.get(r["Location"])
            if before is not None and r[target]:
                rows.append((before, float(r[target])))
            waiting[r["Location"]] = instance(r, "Date", "RainTomorrow")
        return rows

    return make


def next_hour(target: str) -> Callable[[int, int | None], Rows]:
    """Predict a patient's next measurement from what was measured in the hour before."""

    def make(start: int, stop: int | None) -> Rows:
        rows: Rows = []
        before: tuple[str, dict[str, Any]] | None = None
        for r in records("physionet2012_hourly", start, stop):
            if before is not None and before[0] == r["patient"] and r[target]:
                rows.append((before[1], float(r[target])))
            before = (r["patient"], instance(r, "patient", "death"))
        return rows

    return make


def survey_number(target: str, *without: str) -> Callable[[int, int | None], Rows]:
    def make(start: int, stop: int | None) -> Rows:
        found = records("nhanes", start, stop)
        return [(instance(r, "ID", target, *without), float(r[target])) for r in found if r[target]]

    return make


# ---------------------------------------------------------------- labels


def football(start: int, stop: int | None) -> Rows:
    """Predict the result of a match from its odds, league and teams."""
    return [(instance(r, "date", "FTR"), r["FTR"]) for r in records("football_odds", start, stop)]


def rain(start: int, stop: int | None) -> Rows:
    return [(instance(r, "Date", "RainTomorrow"), r["RainTomorrow"]) for r in records("weather_aus", start, stop)]


def survey(start: int, stop: int | None) -> Rows:
    found = records("nhanes", start, stop)
    return [(instance(r, "ID", "Diabetes", "DiabetesAge"), r["Diabetes"]) for r in found if r["Diabetes"]]


def intensive_care(start: int, stop: int | None) -> Rows:
    """Predict the death of a patient from the latest values of the stay, one instance per patient."""
    latest: dict[str, tuple[dict[str, Any], str]] = {}
    for r in records("physionet2012_hourly", start, stop):
        seen = latest.get(r["patient"], ({}, ""))[0]
        latest[r["patient"]] = ({**seen, **instance(r, "patient", "hour", "death")}, r["death"])
    return list(latest.values())


NUMBERS: dict[str, Callable[[int, int | None], Rows]] = {
    "pedestrians s9": pedestrians("s9"),
    "pedestrians s4": pedestrians("s4"),
    "pedestrians s13, a day ahead": pedestrians("s13", 24),
    "weather, wind gust": weather_number("WindGustSpeed"),
    "weather, tomorrow's maximum": tomorrow("MaxTemp"),
    "ICU, next heart rate": next_hour("HR"),
    "survey, systolic": survey_number("BPSysAve", "BPSys1", "BPSys2", "BPSys3"),
    "survey, cholesterol": survey_number("TotChol"),
}
LABELS: dict[str, Callable[[int, int | None], Rows]] = {
    "football": football,
    "weather": rain,
    "survey": survey,
    "ICU": intensive_care,
}
