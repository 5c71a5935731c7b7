"""
Which label should I ask for?
=============================

An expert can look at one instance in twenty. A policy requests labels where they are worth most: at the start, where
the classifier is unsure, and a few at random. The random share finds changes and keeps the estimate of the error
honest: among requested instances alone, a classifier looks worse than it is.
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
print(f"true error {result.cer:.3f}")
print(result.requested)

# %%
# The budget holds over every 1,000 rows, not only in the mean.

policy, model = AskPolicy(0.05), AROW()
asked = []
for x, y in stream:
    asked.append(policy.should_ask(model, x))
    if asked[-1]:
        model.learn_one(x, y)
windows = np.convolve(asked, np.ones(1000), "valid")
print(f"labels requested in 1,000 rows: at most {windows.max():.0f}; then at least {windows[1000:].min():.0f}")

# %%
# Error by labels spent.

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for by, values in errors.items():
    ax.plot(np.array(budgets) * 100, np.array(values) * 100, marker="o", label=by)
ax.set(xscale="log", xlabel="labels requested, % of the instances", ylabel="error in %")
ax.legend(frameon=False)
plt.show()

# %%
# A server does the same for people: ``PUT /models/plant`` with ``{"ask": {"budget": 0.05}}``. A prediction that is kept
# then has ``"ask": true`` if its label is worth the budget, and the dashboard lists such instances with a button per
# label.
#
# **Conclusion.** The fewer labels there are, the more it matters which. With half a percent, uncertain instances give a
# lower error than random ones; from 5 % on this stream has little left to learn.
