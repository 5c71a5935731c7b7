"""
.. index:: ! imbalanced classes, ! class imbalance

One class is rare
=================

One reading in forty is a fault. A learner that minimises errors nearly always predicts "fine", but you would accept
ten false alarms to catch one more fault. Set ``costs`` or ``objective``: the predicted labels change, the
probabilities do not.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AutoClassifier
from varifold.evaluate import prequential

draw = np.random.default_rng(8)


def reading():
    fault = draw.random() < 1 / 40
    centre = 1.0 if fault else 0.0
    return {
        f"sensor {j}": draw.normal(centre, 1.2) for j in range(4) if draw.random() < 0.8
    }, "fault" if fault else "fine"


stream = [reading() for _ in range(4000)]
ways = {
    "default": {},
    "costs: a missed fault costs ten times": {"costs": {"fault": 10.0}},
    'objective="balanced"': {"objective": "balanced"},
}
rows = []
for name, rule in ways.items():
    result = prequential(AutoClassifier("fast", **rule), stream, positive="fault")
    scores = result.per_label()["fault"]
    rows.append((name, scores.recall, scores.precision))
    print(f"{name:40} faults found {scores.recall:.0%}, correct alarms {scores.precision:.0%}")

# %%

figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
places = np.arange(len(rows))
ax.barh(places - 0.2, [recall for _, recall, _ in rows], height=0.38, label="faults found")
ax.barh(places + 0.2, [precision for _, _, precision in rows], height=0.38, label="correct alarms")
ax.set(yticks=places, yticklabels=[name for name, *_ in rows], xlim=(0, 1))
ax.invert_yaxis()
ax.legend(frameon=False, loc="upper right")
plt.show()

# %%
# **Conclusion.** No setting finds all faults without false alarms; the bars show the price of each. State the costs
# you have, and the learner chooses the label that is cheapest on average.
