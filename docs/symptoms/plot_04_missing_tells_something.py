"""
Half of the lab tests are missing, and that means something
===========================================================

A doctor orders a troponin test when they suspect the heart. Whether it was ordered is more informative than most
results. A learner that imputes means loses this information; a learner that models absence keeps it.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AROW, OVFIV, AutoClassifier
from varifold.evaluate import prequential

draw = np.random.default_rng(1)
tests = ["troponin", "crp", "lactate", "sodium", "glucose", "albumin"]


def patient():
    ill = draw.random() < 0.3
    ordered = {"troponin": 0.75 if ill else 0.2, "crp": 0.5, "lactate": 0.6 if ill else 0.35}
    results = {name: draw.normal(0.35 if ill else 0.0, 1.0) for name in tests if draw.random() < ordered.get(name, 0.5)}
    return results, "admitted" if ill else "sent home"


stream = [patient() for _ in range(4000)]

# %%
# ``OVFIV`` adds a model of absence to any learner. ``AutoClassifier`` has one built in.

models = {
    "values only (arow)": AROW(),
    "values and absence (ovfiv of arow)": OVFIV(base=AROW()),
    "auto": AutoClassifier(),
}
results = {name: prequential(model, stream, curve_points=40) for name, model in models.items()}
for name, result in results.items():
    print(f"{name:36} error {result.cer:.3f}, area under the curve {result.auroc:.3f}")

# %%
# The contributions to the prediction when troponin was *not* ordered:

for feature, weight in list(models["values and absence (ovfiv of arow)"].explain_one({"crp": 0.2}).items())[:5]:
    print(f"{feature!s:28} {weight:+.2f}")

# %%

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for name, result in results.items():
    ax.plot(result.curve.at[2:], result.curve.cer[2:], label=name)
ax.set(xlabel="patient", ylabel="error so far")
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** The two curves that use absence lie below the one that sees values only: which tests were ordered
# is more informative here than their results.
