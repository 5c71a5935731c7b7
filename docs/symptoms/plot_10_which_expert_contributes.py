"""
Which expert contributes
========================

The default learner runs several kinds of learner at once. Its report shows their weights, which features matter and
what changed; ``explain_one`` shows the contributions to a single prediction.
"""

import matplotlib.pyplot as plt

from varifold import AutoClassifier
from varifold.cli.sensors import plant

made = plant(n=2500, seed=9)
model = AutoClassifier()
for x, y in zip(made.rows(), made.labels, strict=True):
    model.learn_one(x, y)
report = model.report()
print(report)

# %%
# The weights of the experts over time:

figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
leading = sorted(report.experts, key=report.experts.get, reverse=True)[:6]
names = list(report.experts)
for name in leading:
    ax.plot(report.history_steps, report.history_weights[:, names.index(name)], label=name)
ax.set(xlabel="instances learned", ylabel="weight", ylim=(0, 1))
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# The last right prediction, explained:

right = [i for i, x in enumerate(made.rows()) if model.predict_one(x) == made.labels[i]]
x = made.rows()[right[-1]]
print("prediction:", model.predict_one(x), "truth:", made.labels[right[-1]])
parts = model.explain_one(x)
most = sorted(parts.items(), key=lambda item: -abs(item[1]))[:8]

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.barh([str(name) for name, _ in most][::-1], [part for _, part in most][::-1])
ax.axvline(0, color="0.3", linewidth=0.8)
ax.set(xlabel=f"evidence for {model.predict_one(x)!r} (right) or against it (left)")
plt.show()

# %%
# **Conclusion.** A few experts hold most of the weight, and which ones changes with the stream: that is why ``auto``
# keeps all of them. The bars add up to the score of one prediction, so each can be checked against what an engineer
# knows about the sensor.
