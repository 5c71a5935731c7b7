"""Predict a pedestrian counter one hour ahead while other counters are installed; with intervals."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import varifold
from varifold import AutoRegressor, datasets
from varifold.evaluate import prequential

data = datasets.load("melbourne-pedestrians")
times = np.array(data.times, dtype="datetime64[s]")
years = times.astype("datetime64[Y]").astype(int) + 1970
sensors = np.array([sum(str(name).startswith("s") and ":" not in str(name) for name in x) for x in data.block.rows()])

model = AutoRegressor()
result = prequential(model, data.block, predictions=True)
found = result.predictions
low, high = found.bounds[:, 0].T
inside = (low <= found.truth) & (found.truth <= high)
error = np.abs(found.truth - found.predicted)
print(f"{len(data.block):,} hours, mean absolute error {result.mae:.1f}")
for year in np.unique(years):
    there = (years == year) & (np.arange(len(years)) > 168)
    print(
        f"{year}: {sensors[there].mean():4.1f} counters report, error {error[there].mean():5.1f}, "
        f"{inside[there].mean():.1%} inside, width {(high - low)[there].mean():.0f}"
    )

# One night hour and one noon hour of the last day: the width follows the error that is to be expected.
last = list(data.block[-24:].rows())
for x in (last[3], last[12]):
    interval = model.predict_interval_one(x)
    print(f"at {int(x['hour']):2}: {model.predict_one(x):6.0f}, between {interval.low:.0f} and {interval.high:.0f}")

week = slice(-168, None)
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.fill_between(times[week], low[week], high[week], color="#56B4E9", alpha=0.35, linewidth=0)
ax.plot(times[week], found.truth[week], color="#222222", linewidth=1.0, label="count")
ax.plot(times[week], found.predicted[week], color="#0072B2", linewidth=1.0, label="prediction, 90 % interval")
ax.set(ylabel="pedestrians an hour", title="The last week of the stream")
ax.tick_params(axis="x", labelrotation=20)
ax.legend(frameon=False)
figure.savefig(sys.argv[1], dpi=140)
print(f"varifold {varifold.__version__}")
