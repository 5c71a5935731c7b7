"""Predict the rain of tomorrow at 49 stations: one learner for all, or one per station."""

import sys

import matplotlib.pyplot as plt

import varifold
from varifold import AutoClassifier, PerKey, datasets
from varifold.evaluate import prequential

ROWS, DELAY = 40_000, 49  # the first rows; the rain of tomorrow is known when the stations of a day are through
data = datasets.load("weather-aus").block[:ROWS]
rows, rain = list(data.rows()), data.y
without = [{name: value for name, value in x.items() if name != "Location"} for x in rows]

models = {
    "one for all, station as a column": (AutoClassifier(), rows),
    "one for all, station unknown": (AutoClassifier(), without),
    "one per station": (PerKey(AutoClassifier(), key="Location"), rows),
    "one per station, fast": (PerKey(AutoClassifier("fast"), key="Location"), rows),
}
curves = {}
for name, (model, version) in models.items():
    result = prequential(model, zip(version, rain, strict=True), delay=DELAY, curve_points=40)
    print(f"{name:34} log loss {result.log_loss:.3f}")
    curves[name] = result.curve

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for name, curve in curves.items():
    ax.plot(curve.at[2:], curve.log_loss[2:], label=name)
ax.set(xlabel="rows", ylabel="log loss so far")
ax.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=140)
print(f"varifold {varifold.__version__}")
