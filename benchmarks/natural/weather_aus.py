"""weather-aus, from weatherAUS.RData of the R package rattle.data: ``python -m benchmarks.natural.weather_aus IN OUT``.

IN holds weatherAUS.RData (reading it needs rdata). RISK_MM, the rain of tomorrow, is dropped; rows without
RainTomorrow are left out, and the others are ordered by date and station.
"""

from __future__ import annotations

import pandas as pd

from benchmarks.natural.prepared import arguments, write


def main() -> None:
    import rdata

    given = arguments(__doc__ or "")
    frame = rdata.read_rda(given.originals / "weatherAUS.RData")["weatherAUS"]
    frame = frame.drop(columns="RISK_MM").dropna(subset=["RainTomorrow"])
    frame["Date"] = pd.to_datetime(frame["Date"], unit="D").dt.strftime("%Y-%m-%d")
    write(frame.sort_values(["Date", "Location"], kind="stable"), "weather-aus", given.folder)


if __name__ == "__main__":
    main()
