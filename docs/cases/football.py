"""Predict football matches from odds of bookmakers that come and go, season after season."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import varifold
from varifold import AutoClassifier, datasets
from varifold.bench.peers.naive import Bookmakers
from varifold.evaluate import prequential

data = datasets.load("football-odds")
years = np.array([time[:4] for time in data.times])


def loss(model):
    """Return the log loss of every match, predicted before it was learned."""
    found = prequential(model, data.block, predictions=True).predictions
    p = found.probabilities[np.arange(len(found)), found.truth]
    return -np.log(np.clip(p, 1e-15, 1.0))


auto, mean = loss(AutoClassifier()), loss(Bookmakers())
columns = [{name for x in data.block.take(np.flatnonzero(years == y)).rows() for name in x} for y in np.unique(years)]
before = set()
print("year  columns  new  gone  auto   mean of the bookmakers")
for year, now in zip(np.unique(years), columns, strict=True):
    there = years == year
    new, gone = len(now - before), len(before - now)
    print(f"{year}  {len(now):7}  {new:3}  {gone:4}  {auto[there].mean():.3f}  {mean[there].mean():.3f}")
    before = now

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
by_year = [[values[years == y].mean() for y in np.unique(years)] for values in (auto, mean)]
for values, name, colour in zip(by_year, ("auto", "mean of the bookmakers"), ("#0072B2", "#767676"), strict=True):
    ax.plot(np.unique(years).astype(int), values, color=colour, label=name)
ax.set(ylabel="log loss of the year")
ax.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=140)
print(f"varifold {varifold.__version__}")
