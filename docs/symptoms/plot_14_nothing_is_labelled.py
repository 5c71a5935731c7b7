"""
Nothing is labelled. Which sensor is lying?
===========================================

Most sensors never get a label. An anomaly detector learns what is usual from the readings alone, and reports outliers.
Here three sensors of a pump agree with each other; one falls silent for a while, a fourth is installed later, and
now and then one of them lies.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AutoDetector

rng = np.random.default_rng(4)
lies = {1500: "flow", 2600: "power", 3300: "vibration", 3700: "flow"}


def reading(step):
    speed = rng.normal(50, 10)
    x = {"speed": speed, "flow": 2 * speed + rng.normal(0, 2), "power": 0.1 * speed + rng.normal(0, 0.1)}
    if step >= 2000:
        x["vibration"] = abs(rng.normal(0, 1))  # installed later
    if 1000 <= step < 1400:
        del x["flow"]  # silent
    if step in lies:
        x[lies[step]] *= -1.5
    return x


detector = AutoDetector()
p_values, alarms = [], []
for step in range(4000):
    x = reading(step)
    p_values.append(detector.p_value_one(x))
    if p_values[-1] <= 0.02:
        alarms.append((x, step in lies))
    if step in lies:
        parts = list(detector.explain_one(x).items())[:2]
        print(f"step {step}: {lies[step]} lies, p = {p_values[-1]:.4f},", ", ".join(f"{k} {v:+.2f}" for k, v in parts))
    detector.learn_one(x)

# %%
# The rate of alarms is a promise: about 2 % of the usual readings, also while a sensor is silent and after a new one
# appeared. ``is_anomaly_one(x, rate=0.02)`` is ``p_value_one(x) <= 0.02``.

p_values = np.array(p_values)
for name, stretch in {"all": slice(500, 4000), "silence": slice(1000, 1400), "new": slice(2000, 3000)}.items():
    print(f"{name:8} {np.mean(p_values[stretch] <= 0.02):.2%} alarms")

# %%
# Labels are not needed, but use those of an operator who confirms or rejects alarms. ``label_one`` lets the
# experts that were right gain weight; it does not learn the reading again.

print({name: round(weight, 2) for name, weight in detector.weights.items()})
for x, confirmed in alarms:
    detector.label_one(x, confirmed)
print({name: round(weight, 2) for name, weight in detector.weights.items()})

# %%
# A table on disk needs no code: ``varifold detect readings.csv`` lists the most unusual rows and why.

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.plot(-np.log10(p_values), ".", markersize=2)
ax.plot(list(lies), [-np.log10(p_values[step]) for step in lies], "o", fillstyle="none", label="a sensor lies")
ax.axhline(-np.log10(0.02), linewidth=1, linestyle="--")
ax.axvspan(1000, 1400, alpha=0.15, label="flow is silent")
ax.set(xlabel="step", ylabel="-log10 of the p-value")
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** All four lies are above the dashed line, and the explanation names the sensor. During the
# silence and after the new sensor came there are about as many alarms as promised.
