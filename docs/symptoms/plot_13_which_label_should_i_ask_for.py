"""
Which label should I ask for?
=============================

An expert can look at one instance in twenty. A policy requests labels where they are worth most: where the classifier
is unsure, where features are new, and a few at random. The random share finds changes and keeps the estimate of the
error honest: among requested instances alone, a classifier looks worse than it is.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AROW
from varifold.ask import AskPolicy
from varifold.evaluate import prequential

rng = np.random.default_rng(2)


def reading(step):
    heat, load, noise = rng.normal(size=3)
    x = {"heat": heat, "load": load, "noise": noise}
    if rng.random() < 0.3:
        del x["load"]  # the sensor is unreliable
    return x, heat + 0.5 * load > 0.8


stream = [reading(step) for step in range(6000)]
budgets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
errors = {
    by: [prequential(AROW(), stream, ask=AskPolicy(budget, by=by)).cer for budget in budgets]
    for by in ("margin", "random")
}
for by, values in errors.items():
    print(f"{by:8}", "  ".join(f"{budget:.1%}: {error:.3f}" for budget, error in zip(budgets, values, strict=True)))

# %%
# What one knows without the other labels: the error among the requested ones is too high, the weighted one is not.

result = prequential(AROW(), stream, ask=0.05)
print(f"true error {result.cer:.3f}; estimated from {result.requested.labels} labels {result.requested.error:.3f}")
print(f"error among the requested labels {result.requested.plain:.3f}")

# %%
# Requested labels reach the error of random ones with fewer labels.

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for by, values in errors.items():
    ax.plot(np.array(budgets) * 100, np.array(values) * 100, marker="o", label=by)
ax.set(xscale="log", xlabel="labels requested, % of the instances", ylabel="error in %")
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** The curve of the margin lies below that of random requests: the labels of uncertain instances are
# worth more.
