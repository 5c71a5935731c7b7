"""Inside river's own tools: pipelines that are pickled and continue, and river's one learner per label."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

from river import compose, metrics, multiclass, preprocessing

import varifold


def stream(n: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Three labels around three places; one of two sensors is often silent."""
    rng = random.Random(5)
    for _ in range(n):
        k = rng.randrange(3)
        x = {"a": rng.gauss(3.0 * k, 1.0), "b": rng.gauss(-3.0 * k, 1.0)}
        if rng.random() < 0.4:
            del x[rng.choice("ab")]
        yield x, "xyz"[k]


def test_a_pickled_pipeline_continues_to_the_bit() -> None:
    pipe = compose.Pipeline(preprocessing.StandardScaler(), varifold.AutoClassifier(budget="fast"))
    rows = list(stream(200))
    for x, y in rows[:100]:
        pipe.learn_one(x, y)
    again = pickle.loads(pickle.dumps(pipe))
    for x, y in rows[100:]:
        assert again.predict_proba_one(x) == pipe.predict_proba_one(x)
        pipe.learn_one(x, y)
        again.learn_one(x, y)


def macro_f1(model: Any) -> float:
    found = metrics.MacroF1()
    for x, y in stream(600):
        prediction = model.predict_one(x)
        if prediction is not None:
            found.update(y, prediction)
        model.learn_one(x, y)
    return found.get()


def test_one_learner_per_label_does_without_the_majority_bias() -> None:
    with_bias = macro_f1(multiclass.OneVsRestClassifier(varifold.OLVF()))
    without = macro_f1(multiclass.OneVsRestClassifier(varifold.OLVF(majority_bias=False)))
    assert without > with_bias
