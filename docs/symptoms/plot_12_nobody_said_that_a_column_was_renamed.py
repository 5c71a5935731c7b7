"""
A column was renamed without notice
===================================

Features come and go, and nobody announces it. A ``Monitor`` follows them without labels: it reports the sensors that
fall silent together as one event, names a change of unit, and suggests which new column continues an old one. The
suggestion can be applied to a learner, which then keeps what it knows.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AROW
from varifold.monitor import Monitor

rng = np.random.default_rng(3)


def reading(step):
    load = rng.normal()
    x = {"load": load, "heat": 60 + 8 * load + rng.normal(0, 3), "flow": 5 - load + rng.normal(), "fan": rng.normal()}
    if 1500 <= step < 2200:
        del x["flow"], x["fan"]  # a cable is loose
    if step >= 3000:
        x["temperature"] = 1.8 * x.pop("heat") + 32  # a new firmware: another name, another unit
    return x, load + rng.normal(0, 0.5) > 0


stream = [reading(step) for step in range(4000)]
monitor = Monitor()
monitor.learn_many([x for x, _ in stream])
monitor.check()
for event in monitor.events:
    print(event)
for rename in monitor.renames:
    print("suggested:", rename)

# %%
# A learner to which the rename is applied keeps the weight of ``heat`` for ``temperature``.

model = AROW()
model.learn_many([x for x, _ in stream[:3000]], [y for _, y in stream[:3000]])
model.rename({rename.old: rename.new for rename in monitor.renames})
print("weights:", {name: round(feature.weight, 2) for name, feature in model.features.items()})

# %%
# The map of the stream, as ``varifold watch FILE --plot map.png`` draws it: two sensors fall silent together and
# return, and one line ends where another begins.

names, starts, shares = monitor.presence()
figure, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.pcolormesh(np.append(starts, monitor.step), np.arange(len(names) + 1), shares, cmap="Blues", vmin=0, vmax=1)
ax.set_yticks(np.arange(len(names)) + 0.5, names)
ax.invert_yaxis()
for event in monitor.events:
    ax.axvline(event.step, color="tab:orange", linewidth=1)
ax.set(xlabel="instance")
plt.show()

# %%
# **Conclusion.** The orange lines mark where a column falls silent, returns or takes over from another: a stream can
# be watched without anyone announcing a change.
