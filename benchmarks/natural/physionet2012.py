"""physionet2012, from the challenge's sets a and b: ``python -m benchmarks.natural.physionet2012 IN OUT``.

IN holds the folders set-a and set-b (a file of time, parameter and value per patient) and Outcomes-a.txt,
Outcomes-b.txt. One row per patient and hour with any value is written, with the last value of each parameter in that
hour; descriptors of -1 mean unknown and are dropped. Patients are ordered by id.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from benchmarks.natural.prepared import arguments, write


def stay(path: Path) -> list[dict[str, str]]:
    """Return the rows of one patient: the last value of each parameter in each hour, as it is written."""
    hours: dict[int, dict[str, str]] = {}
    for row in csv.DictReader(path.read_text().splitlines()):
        if row["Parameter"] not in ("RecordID", "") and float(row["Value"]) != -1:
            hours.setdefault(int(row["Time"][:2]), {})[row["Parameter"]] = row["Value"]
    return [{"patient": path.stem, "hour": str(hour), **hours[hour]} for hour in sorted(hours)]


def main() -> None:
    given = arguments(__doc__ or "")
    outcomes = pd.concat([pd.read_csv(given.originals / f"Outcomes-{part}.txt", dtype=str) for part in "ab"])
    died = dict(zip(outcomes["RecordID"], outcomes["In-hospital_death"], strict=True))
    paths = sorted((p for part in "ab" for p in (given.originals / f"set-{part}").glob("*.txt")), key=lambda p: p.stem)
    rows = [row for path in paths for row in stay(path)]
    names = sorted({name for row in rows for name in row} - {"patient", "hour"})
    frame = pd.DataFrame(rows, columns=["patient", "hour", *names])
    frame["death"] = frame["patient"].map(died)
    write(frame, "physionet2012", given.folder)


if __name__ == "__main__":
    main()
