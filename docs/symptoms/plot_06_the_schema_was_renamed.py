"""
The schema was renamed
======================

After an update every sensor has a new name: ``s3`` becomes ``plant/s3``. To a learner, the old features vanished and
unknown ones appeared. ``rename`` moves what was learned to the new name, before or after the new name was first seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AROW

draw = np.random.default_rng(3)


def reading(step):
    hot = draw.random() < 0.5
    prefix = "" if step < 1000 else "plant/"
    return {
        f"{prefix}s{j}": draw.normal(0.5 if hot else 0.0, 1.0 + 0.1 * j) for j in range(20)
    }, "hot" if hot else "fine"


stream = [reading(step) for step in range(1300)]
curves = {}
for name, renames in (("without rename()", False), ("with rename()", True)):
    model, wrong = AROW(), []
    for step, (x, y) in enumerate(stream):
        if renames and step == 1000:
            model.rename({f"s{j}": f"plant/s{j}" for j in range(20)})
        wrong.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    curves[name] = wrong
    print(f"{name:16} error of the next 50 instances {np.mean(wrong[1000:1050]):.2f}, {len(model.features)} features")

# %%

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for name, wrong in curves.items():
    ax.plot(range(900, 1200), np.cumsum(wrong[900:1200]), label=name)
ax.axvline(1000, color="0.8", zorder=0)
ax.set(xlabel="instance", ylabel="errors since instance 900")
ax.legend(frameon=False)
plt.show()

# %%
# **Conclusion.** The curves part at instance 1,000: without ``rename()`` the learner makes more errors until the new
# names are learned.
