"""
What was true has changed: concept drift
========================================

A pump used to fail when it was hot. Since an overhaul in the middle of the stream, heat is harmless and vibration
precedes a failure. Every sensor still reports the same kind of values, but they mean something else: concept drift.
Nothing marks when it happens.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np

from varifold import AutoClassifier

rng = np.random.default_rng(6)
OVERHAUL = 3000
model = AutoClassifier()
wrong = {"keeps learning": [], "trained on the first 2,000": []}
for step in range(6000):
    x = {"heat": rng.normal(60, 10), "vibration": rng.normal(3, 1), "load": rng.uniform(0, 1)}
    cause = (x["heat"] - 60) / 10 if step < OVERHAUL else x["vibration"] - 3
    y = "failure" if cause + rng.normal(0, 0.3) > 0.8 else "fine"
    if step == 2000:
        frozen = copy.deepcopy(model)
    wrong["keeps learning"].append(model.predict_one(x) != y)
    wrong["trained on the first 2,000"].append(step >= 2000 and frozen.predict_one(x) != y)
    model.learn_one(x, y)

# %%
# The report names the experts that were restarted, and the step since which they had been wrong more often.

for drift in model.report().drifts:
    print(drift)
print("largest contribution now:", next(iter(model.explain_one({"heat": 85.0, "vibration": 5.0, "load": 0.5}))))

# %%
# Error over the last 200 instances:

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for name, errors in wrong.items():
    recent = np.convolve(errors, np.ones(200) / 200, mode="valid")
    start = 2000 if name.startswith("trained") else 0
    ax.plot(np.arange(200, 6001)[start:], recent[start:], label=name)
    print(f"{name:28} error after the overhaul {np.mean(errors[OVERHAUL:]):.1%}")
ax.axvline(OVERHAUL, color="0.3", linewidth=1, linestyle="--")
ax.annotate("overhaul", (OVERHAUL, ax.get_ylim()[1]), xytext=(4, -12), textcoords="offset points")
ax.set(xlabel="instance", ylabel="error, last 200", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** The model that was trained once stays wrong after the overhaul; the one that keeps learning is back at
# its old error after a few hundred instances, and its report dates the change. ``varifold.drift.ADWIN`` is the detector
# behind it; :doc:`/by-symptom/plot_12_nobody_said_that_a_column_was_renamed` shows drift of the inputs, without labels.
