"""football-odds, from the season files of football-data.co.uk: ``python -m benchmarks.natural.football_odds IN OUT``.

IN holds, in any folders, the files 9900_D1.csv ... 2425_SP1.csv of the five leagues D1, E0, F1, I1 and SP1 (the site
calls them mmz4281/9900/D1.csv ...). Matches from 2000 on are kept, ordered by date, league and home team; their odds
and handicaps stay as they are written, results and match statistics other than the final result are dropped.
"""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import pandas as pd

from benchmarks.natural.prepared import arguments, write

_NAMES = """
    B365H B365D B365A BWH BWD BWA GBH GBD GBA IWH IWD IWA LBH LBD LBA PSH PSD PSA WHH WHD WHA SJH SJD SJA VCH
    VCD VCA BSH BSD BSA Bb1X2 BbMxH BbAvH BbMxD BbAvD BbMxA BbAvA BbOU BbMx>2.5 BbAv>2.5 BbMx<2.5 BbAv<2.5 BbAH
    BbAHh BbMxAHH BbAvAHH BbMxAHA BbAvAHA PSCH PSCD PSCA MaxH MaxD MaxA AvgH AvgD AvgA B365>2.5 B365<2.5 P>2.5
    P<2.5 Max>2.5 Max<2.5 Avg>2.5 Avg<2.5 AHh B365AHH B365AHA PAHH PAHA MaxAHH MaxAHA AvgAHH AvgAHA B365CH
    B365CD B365CA BWCH BWCD BWCA IWCH IWCD IWCA WHCH WHCD WHCA VCCH VCCD VCCA MaxCH MaxCD MaxCA AvgCH AvgCD
    AvgCA B365C>2.5 B365C<2.5 PC>2.5 PC<2.5 MaxC>2.5 MaxC<2.5 AvgC>2.5 AvgC<2.5 AHCh B365CAHH B365CAHA PCAHH
    PCAHA MaxCAHH MaxCAHA AvgCAHH AvgCAHA SBH SBD SBA GB>2.5 GB<2.5 GBAHH GBAHA GBAH LBAHH LBAHA LBAH B365AH BFH
    BFD BFA 1XBH 1XBD 1XBA BFEH BFED BFEA BFE>2.5 BFE<2.5 BFEAHH BFEAHA BFCH BFCD BFCA 1XBCH 1XBCD 1XBCA BFECH
    BFECD BFECA BFEC>2.5 BFEC<2.5 BFECAHH BFECAHA SYH SYD SYA SOH SOD SOA
"""
ODDS = _NAMES.split()


def season(path: Path) -> list[dict[str, str]]:
    """Read one season; rows may have more cells than the header, and years two or four digits."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        if row["Date"] and row["HomeTeam"] and row["FTR"]:
            day, month, year = row["Date"].split("/")
            century = 0 if len(year) == 4 else 2000 if int(year) < 90 else 1900
            date = datetime(int(year) + century, int(month), int(day))
            kept = {name: (row.get(name) or "").strip() for name in ("Div", "HomeTeam", "AwayTeam", *ODDS, "FTR")}
            rows.append({"date": date.strftime("%Y-%m-%d"), **kept})
    return rows


def main() -> None:
    given = arguments(__doc__ or "")
    files = sorted(given.originals.rglob("????_*.csv"))
    rows = [row for path in files for row in season(path) if row["date"] >= "2000"]
    frame = pd.DataFrame(rows).sort_values(["date", "Div", "HomeTeam"], kind="stable")
    write(frame, "football-odds", given.folder)


if __name__ == "__main__":
    main()
