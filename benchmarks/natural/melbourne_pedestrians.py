"""melbourne-pedestrians, from the city's hourly counts: ``python -m benchmarks.natural.melbourne_pedestrians IN OUT``.

IN holds pedestriancounts_melbourne.csv, the city's long form without a header: time, weekday, hour, sensor id, sensor
name, count. One row per hour and one column per sensor are written; sensors keep their ids.
"""

from __future__ import annotations

import pandas as pd

from benchmarks.natural.prepared import arguments, write


def main() -> None:
    given = arguments(__doc__ or "")
    columns = ["t", "day", "hour", "sensor", "name", "count"]
    rows = pd.read_csv(given.originals / "pedestriancounts_melbourne.csv", names=columns)
    rows["t"] = pd.to_datetime(rows["t"].str.strip(), format="%d-%b-%Y %H:%M")
    frame = rows.pivot_table(index="t", columns="sensor", values="count", aggfunc="first").sort_index()
    frame.columns = [f"s{int(sensor)}" for sensor in frame.columns]
    write(frame.reset_index(), "melbourne-pedestrians", given.folder)


if __name__ == "__main__":
    main()
