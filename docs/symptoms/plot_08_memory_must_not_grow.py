"""
Memory must not grow
====================

Session identifiers, user names, misspelled words: new features keep appearing and most are never seen again.
``max_features`` bounds the number of features that a learner keeps; ``evict`` chooses which one to drop.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AROW

draw = np.random.default_rng(2)


def instance(k):
    label = bool(draw.random() < 0.5)
    useful = {f"signal {j}": float(draw.normal(0.4 if label else -0.4)) for j in range(10) if draw.random() < 0.7}
    return useful | {f"session {k * 3 + j}": 1.0 for j in range(3)}, label


models = {
    "no bound": AROW(),
    "500 features, evict the oldest": AROW(max_features=500, evict="oldest"),
    "500 features, evict the lightest": AROW(max_features=500, evict="lightest"),
}
sizes = {name: [] for name in models}
errors = dict.fromkeys(models, 0)
for k in range(6000):
    x, y = instance(k)
    for name, model in models.items():
        errors[name] += model.predict_one(x) != y
        model.learn_one(x, y)
        if k % 500 == 499:
            sizes[name].append(len(model.to_bytes()) / 1024)
for name, model in models.items():
    print(f"{name:32} error {errors[name] / 6000:.3f}, {len(model.features):,} features kept")

# %%

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for (name, size), style in zip(sizes.items(), ("-", "-", "--"), strict=True):
    ax.plot(np.arange(500, 6001, 500), size, style, label=name)
ax.set(xlabel="instance", ylabel="state in KB", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** Bounded learners stay at a constant size with the same error here, while the unbounded one grows
# with every new feature.
