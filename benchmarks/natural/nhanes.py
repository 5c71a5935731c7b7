"""nhanes, from NHANESraw.rda of the R package NHANES: ``python -m benchmarks.natural.nhanes IN OUT`` (needs rdata).

IN holds NHANESraw.rda. All columns and rows are kept in their order.
"""

from __future__ import annotations

from benchmarks.natural.prepared import arguments, write


def main() -> None:
    import rdata

    given = arguments(__doc__ or "")
    frame = rdata.read_rda(given.originals / "NHANESraw.rda")["NHANESraw"]
    write(frame, "nhanes", given.folder)


if __name__ == "__main__":
    main()
