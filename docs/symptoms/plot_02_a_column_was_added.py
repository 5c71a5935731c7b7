"""
A column was added
==================

The January export has three columns, February has four, and in March an old column is gone. Nothing has to be
declared, padded or retrained: each frame is learned as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import varifold

draw = np.random.default_rng(3)


def month(rows, columns):
    need = draw.normal(size=rows)
    everything = {
        "visits": need + draw.normal(0, 1.5, rows),
        "basket": need + draw.normal(0, 1.2, rows),
        "region": draw.choice(["north", "south"], rows),
        "clicks in the app": need + draw.normal(0, 0.4, rows),
    }
    return pd.DataFrame({name: everything[name] for name in columns}), np.where(need > 0, "buys", "leaves")


months = {
    "January": ["visits", "basket", "region"],
    "February": ["visits", "basket", "region", "clicks in the app"],
    "March": ["basket", "region", "clicks in the app"],
}

model = varifold.AutoClassifier()
errors, at = [], []
for name, columns in months.items():
    frame, labels = month(1000, columns)
    for first in range(0, len(frame), 100):
        part, truth = frame.iloc[first : first + 100], labels[first : first + 100]
        errors.append(np.mean(np.array(model.predict_many(part)) != truth))
        model.learn_many(part, truth)
        at.append(len(at) * 100)
    print(f"{name:9} {len(columns)} columns, error {np.mean(errors[-10:]):.3f}")

# %%
# The report describes what changed.

print(model.report())

# %%

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.step(at, errors, where="post")
for start, name in zip((0, 1000, 2000), months, strict=True):
    ax.axvline(start, color="0.8", zorder=0)
    ax.text(start + 20, max(errors), name, va="top")
ax.set(xlabel="row", ylabel="error of the next 100 rows", ylim=(0, None))
plt.show()

# %%
# **Conclusion.** The error falls when the new column arrives in February and does not rise when an old one vanishes
# in March: nothing was retrained, padded or imputed.
