"""
Labels are expensive
====================

A lab test shows what is in a sample; the sensors measure every sample. Only one in a hundred, or in twenty, goes to the
lab. The others have no label: they can be ignored, or what their features alone show can be learned.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AutoClassifier, streams, to_block
from varifold.evaluate import prequential


def samples(seed, n=2000):
    """Three substances seen by eight sensors that are related to each other; each sensor misses half of the samples."""
    rng = np.random.default_rng(seed)
    mixing, substance = rng.normal(size=(3, 8)), rng.integers(0, 3, n)
    content = rng.normal(size=(n, 3)) + 1.3 * rng.normal(size=(3, 3))[substance]
    values = content @ mixing + 0.3 * rng.normal(size=(n, 8))
    rows = [{f"s{j}": float(v) for j, v in enumerate(row) if rng.random() < 0.5} for row in values]
    return to_block(rows, [f"substance {k}" for k in substance])


# %%
# The scenario ``labels:0.05`` withholds all but 5 % of the labels from the learner. All predictions are scored.

shares, seeds = (0.01, 0.02, 0.05, 0.1, 0.3, 1.0), range(3)
errors = {"ignore": [], "learn": []}
for share in shares:
    for unlabelled, found in errors.items():
        runs = [
            prequential(
                AutoClassifier(unlabelled=unlabelled),
                streams.prepare(samples(seed), f"labels:{share}", seed=seed, shuffle=False),
            ).cer
            for seed in seeds
        ]
        found.append(np.mean(runs))
    print(f"{share:5.0%} of the labels: ignored {errors['ignore'][-1]:.3f}, learned {errors['learn'][-1]:.3f}")

# %%

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for unlabelled, found in errors.items():
    ax.plot(shares, found, marker="o", label=f'unlabelled="{unlabelled}"')
ax.set(xlabel="share of the labels that are learned", ylabel="error", xscale="log", ylim=(0, None))
ax.set_xticks(shares, [f"{share:.0%}" for share in shares], minor=False)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** The fewer labels, the more the others help: the copula learns from all samples which sensors go
# together, and infers those that are missing. With all labels both are the same. A label is still worth more than a
# sample without one: twice the labels help about as much as all of the others. Where the labels do not follow the
# structure of the values nothing is gained, and with a handful of labels it can be worse (decision 0183).
