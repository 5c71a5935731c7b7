"""
Every document has different words
==================================

A document is a dict from words to counts. There is no vocabulary to build first: an unseen word is a new feature, and
a word that does not occur is absent and costs nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from varifold import AROW, NB3, ORF3V, AutoClassifier
from varifold.evaluate import prequential

draw = np.random.default_rng(5)
topics = {"sport": 0, "politics": 1500}


def document():
    """Draw common words by Zipf's law and a few rarer words of the topic; new words keep appearing."""
    topic = str(draw.choice(list(topics)))
    common = np.minimum(draw.zipf(1.2, size=25), 20_000)
    own = 20_000 + topics[topic] + draw.integers(0, 2500, size=4)
    return {f"word {word}": 1.0 for word in (*common, *own)}, topic


stream = [document() for _ in range(2500)]
print(list(stream[0][0])[:6], "...")

# %%
# A value that is always 1 only marks presence: scaling leaves it as it is.

models = {"auto": AutoClassifier(), "arow": AROW(), "nb3": NB3(), "orf3v": ORF3V()}
results = {name: prequential(model, stream, curve_points=25) for name, model in models.items()}
for name, result in results.items():
    print(f"{name:6} error {result.cer:.3f}  {result.us_per_instance:6.1f} us per document  {result.names:,} words")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, result in results.items():
    left.plot(result.curve.at, result.curve.cer, label=name)
left.set(xlabel="document", ylabel="error so far", ylim=(0, None))
left.legend(frameon=False)
right.plot(results["auto"].curve.at, results["auto"].curve.known, color="0.3")
right.set(xlabel="document", ylabel="words seen so far", ylim=(0, None))
plt.show()

# %%
# **Conclusion.** The number of words keeps growing, and so does what is learned: every error curve but that of
# ``orf3v`` falls to the end. ``auto`` is the best of the four without a choice; on words alone ``nb3`` is nearly as
# good at a small part of the cost.
