"""Predict the death of intensive-care patients; compare the values with the choice of tests."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import varifold
from varifold import AutoClassifier, datasets
from varifold.evaluate import prequential

patients = datasets.load("physionet2012").block
rows, died = list(patients.rows()), patients.y

# The same patients three times: as they are; only which tests were made; only values, gaps filled with means so far.
ordered = [{name: 1.0 for name in x if name not in ("Age", "Gender", "Height", "ICUType")} for x in rows]
sums, counts, filled = {}, {}, []
for x in rows:
    for name, value in x.items():
        if not isinstance(value, str):
            sums[name], counts[name] = sums.get(name, 0.0) + value, counts.get(name, 0) + 1
    filled.append({**{name: sums[name] / counts[name] for name in sums}, **x})

for title, version in (("as it is", rows), ("which tests", ordered), ("filled in", filled)):
    result = prequential(AutoClassifier(), zip(version, died, strict=True))
    print(f"{title:12} log loss {result.log_loss:.3f}, area under the curve {result.auroc:.3f}")

# Risk and sets of labels that contain the truth in 95 % of the cases.
model = AutoClassifier(coverages=(0.95,))
result = prequential(model, patients, positive=1, predictions=True)
found = result.predictions
risk, truth = found.probabilities[:, found.labels.index(1)], found.truth == found.labels.index(1)
bins = np.clip((10 * risk).astype(int), 0, 9)
for b in range(0, 10, 2):
    there = (bins // 2 == b // 2) & (np.arange(len(risk)) > 500)
    print(f"risk {10 * b:2} to {10 * b + 20:3} %: {there.sum():5,} patients, {truth[there].mean():.0%} died")
sets = found.sets[:, 0]
both = sets.sum(axis=1) == 2
print(f"sets contain the truth in {result.sets[0].covered:.1%}; {both.mean():.0%} of them contain both labels")
print(f"death where the set is {{survives}}: {truth[~both & sets[:, found.labels.index(0)]].mean():.1%}")

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
shown = [(risk[bins == b].mean(), truth[bins == b].mean(), (bins == b).sum()) for b in range(10) if (bins == b).any()]
ax.plot([0, 1], [0, 1], color="0.8", linewidth=1)
ax.scatter(*zip(*[(p, t) for p, t, _ in shown], strict=True), s=[8 + n / 12 for *_, n in shown], color="#0072B2")
ax.set(xlabel="predicted risk", ylabel="share that died", title="Area of a point: patients with that risk")
figure.savefig(sys.argv[1], dpi=140)
print(f"varifold {varifold.__version__}")
