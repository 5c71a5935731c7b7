"""
How sure is it?
===============

A prediction that is off by 1 today may be off by 5 tomorrow, when half of the sensors are silent. An interval shows
it: ``predict_interval_one`` returns bounds that contain the target in 90 % of the cases, also while sensors are out.
"""

# %%
# A quantity that depends on six sensors, three of which are read through one gateway. From row 1,200 to 2,000 the
# gateway is down.

import matplotlib.pyplot as plt
import numpy as np

import varifold

rng = np.random.default_rng(7)
rows = []
for step in range(3000):
    v = rng.normal(size=6)
    there = range(6) if not 1200 <= step < 2000 else range(3)
    x = {f"sensor {j}": float(v[j]) for j in there if rng.random() < 0.95}
    rows.append((x, float(20.0 + v @ [1, 1, 1, 3, 2, 1] + rng.normal())))

# %%
# `AutoRegressor` maintains 90 % intervals as it learns. Every other learner does so if constructed with
# ``coverages=(.9,)``; several coverages are possible.

model = varifold.AutoRegressor()
result = varifold.evaluate.prequential(model, rows, predictions=True)
y, (low, high) = result.predictions.truth, result.predictions.bounds[:, 0].T
covered = (low <= y) & (y <= high)
for name, part in (("before", slice(100, 1200)), ("during", slice(1200, 2000)), ("after", slice(2000, None))):
    print(f"{name:7} {covered[part].mean():.1%} of the targets inside, mean width {(high - low)[part].mean():.1f}")

# %%
# The width is a multiple of the error expected with the features that are present, learned from past errors. When these
# features fail for the first time the band follows the errors; the next time it starts wider.

at, error = np.arange(20, len(y)), y[20:] - result.predictions.predicted[20:]
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.axvspan(1200, 2000, color="0.93")
for bound in (low, high):
    ax.plot(at, (bound - result.predictions.predicted)[20:], color="#56B4E9", linewidth=0.8)
ax.plot(at, error, ".", color="#0072B2", markersize=1.5)
ax.set(xlabel="instance", ylabel="error and 90 % interval", ylim=(-15, 15))
plt.show()

# %%
# One prediction, with all sensors and with the gateway down:

whole = {f"sensor {j}": 0.5 for j in range(6)}
for x in (whole, {name: value for name, value in whole.items() if name < "sensor 3"}):
    interval = model.predict_interval_one(x)
    print(f"{len(x)} sensors: {model.predict_one(x):.1f}, between {interval.low:.1f} and {interval.high:.1f}")

# %%
# A classifier predicts a set of labels. More than one label means that it is unsure. An empty set marks one of the
# least certain predictions of a learner that is right more often than the requested coverage.

classifier = varifold.AutoClassifier(budget="fast", coverages=(0.8, 0.95))
for x, target in rows:
    classifier.learn_one(x, "high" if target > 22 else "low" if target < 18 else "normal")
for x in (dict.fromkeys(whole, -1.0), dict.fromkeys(whole, 0.2), {"sensor 0": 0.2}):
    print(len(x), "sensors:", *(sorted(classifier.predict_set_one(x, coverage)) for coverage in (0.8, 0.95)))

# %%
# Three limits. Coverage is a share over the stream, and over a few hundred rows of it; it is no promise for a single
# instance. Errors are measured when a target is learned: if it arrives late, learn it with the memo of its prediction
# (``memo_one``), or the learner measures what it would predict now, not what it predicted. A coverage cannot be added
# later, because the learner counts errors while it learns.

# %%
# **Conclusion.** Intervals widen while evidence is missing, and narrow again afterwards, so that the share inside
# stays as requested.
