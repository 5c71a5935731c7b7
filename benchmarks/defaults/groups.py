"""Log loss of the default classifier on football odds, with and without its expert on groups of near copies.

    python -m benchmarks.defaults.groups [--rows 0:22900] [--without groups]

The columns are the odds of bookmakers, who come and go; their mean is what the learner is compared with: the inverse
odds of home win, draw and away win, divided by their sum, averaged over all bookmakers of the match (matches without
odds: the shares of the results). Choices were made on the first half, rows 0:22900; the whole stream is reported.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import varifold
from benchmarks import natural_rows
from varifold import AutoClassifier

LABELS = ("H", "D", "A")


def bookmakers(rows: list[tuple[dict[str, Any], Any]]) -> np.ndarray[Any, Any]:
    """Return the log loss of the mean of all bookmakers, by match."""
    share = np.bincount([LABELS.index(y) for _, y in rows], minlength=3) / len(rows)
    losses = []
    for x, y in rows:
        quotes = []
        for name in x:
            odds = [x.get(name[:-1] + label) for label in LABELS] if name.endswith("H") else [None]
            if all(isinstance(quote, float) and quote > 0.0 for quote in odds) and not name.endswith("AHH"):
                inverse = 1.0 / np.array(odds, dtype=float)
                quotes.append(inverse / inverse.sum())
        mean = np.mean(quotes, axis=0) if quotes else share
        losses.append(-np.log(mean[LABELS.index(y)]))
    return np.array(losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="0:", help="START:STOP")
    parser.add_argument("--without", nargs="*", default=[], help="experts to leave out")
    args = parser.parse_args()
    first, _, last = args.rows.partition(":")
    rows = natural_rows.football(int(first or 0), int(last) if last else None)
    block = varifold.to_block([x for x, _ in rows], [y for _, y in rows])
    model = AutoClassifier()
    model._names = [name for name in model._engine.model.names if name not in args.without]
    model._engine = model._make_engine()
    start = time.process_time()
    classes, chances = model.run_block(block)
    spent = time.process_time() - start
    truth = np.array([model.classes.index(y) for _, y in rows])
    losses = -np.log(np.maximum(chances[np.arange(len(rows)), truth], 1e-6))
    losses[: len(LABELS)] = np.log(3.0)  # labels that have not been seen
    books = bookmakers(rows)
    print(f"rows {args.rows}, left out: {args.without or 'none'}")
    print(f"log loss {losses.mean():.4f}, bookmakers {books.mean():.4f}")
    print(f"error {100 * np.mean(classes != truth):.2f} %, {1e6 * spent / len(rows):.0f} us")
    gaps = [part.mean() for part in np.array_split(losses - books, 8)]
    print("behind the bookmakers by eighth of the rows: " + " ".join(f"{gap:+.4f}" for gap in gaps))


if __name__ == "__main__":
    main()
