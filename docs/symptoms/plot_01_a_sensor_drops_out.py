"""
A sensor drops out
==================

A plant has six groups of sensors. Sometimes a whole group falls silent; some sensors are removed for good, others
are added. The usual remedy fills the gaps with zeros or with the running mean. This page compares one learner on
the same stream with and without filling.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AutoClassifier, to_block
from varifold.cli.sensors import plant
from varifold.evaluate import prequential

made = plant(n=4000, seed=11)
readings, names = made.readings, made.names

# %%
# ``readings`` is a table with NaN where a sensor was silent. varifold needs nothing else: NaN means absent.


def filled(with_means):
    there = ~np.isnan(readings)
    count = there.cumsum(axis=0)
    mean = np.where(there, readings, 0.0).cumsum(axis=0) / np.maximum(count, 1)
    return np.where(there, readings, np.where(count > 0, mean if with_means else 0.0, np.nan))


ways = {"absent stays absent": readings, "zeros filled in": filled(False), "means filled in": filled(True)}
results = {
    name: prequential(AutoClassifier(), to_block(values, made.labels, names=names), curve_points=40)
    for name, values in ways.items()
}
for name, result in results.items():
    print(f"{name:22} error {result.cer:.3f}")

# %%
# Outages of a group are shaded grey.

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for _, first, end in made.outages():
    ax.axvspan(first, end, color="0.9")
for name, result in results.items():
    ax.plot(result.curve.at[4:], result.curve.cer[4:], label=name)
ax.set(xlabel="instance", ylabel="error so far")
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** Leaving absent values absent gives the lowest error so far at the end of the picture; zeros filled
# in give the highest, and running means lie between them.
