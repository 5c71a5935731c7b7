import numpy as np
import pytest

from tests.oracles.harness import stream
from tests.oracles.nb3 import PlainNB3
from varifold import NB3


@pytest.mark.parametrize("labels", [2, 4])
@pytest.mark.parametrize(("M", "prior", "intercept", "weights"), [(1.0, 1.0, True, False), (0.4, 0.2, False, True)])
def test_follows_the_definition(labels, M, prior, intercept, weights):
    model, plain = NB3(M=M, prior=prior, fit_intercept=intercept), PlainNB3(M, prior, intercept)
    names = set()
    for x, y, w in stream(n=120, d=7, labels=labels, weights=weights):
        known = names & set(x)
        if known:
            found, expected = model.margins_one(x), plain.scores(known)
            assert list(found) == list(expected)
            np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-9)
        model.learn_one(x, y, w)
        if w > 0:
            plain.learn(x, y, w)
            names |= set(x)


def test_hears_only_the_telling_share():
    model = NB3(M=0.25)
    for step in range(100):
        model.learn_one({"telling" if step % 2 else "other": 1.0, **{f"word {j}": 1.0 for j in range(7)}}, step % 2)
    parts = model.explain_one({"telling": 1.0, **{f"word {j}": 1.0 for j in range(7)}}, 1)
    assert parts["telling"] > 0.5
    assert sum(part != 0.0 for name, part in parts.items() if name != "(intercept)") <= 2


def test_new_words_do_not_favour_the_rare_label():
    """One message in five is spam, half of its words never come again: naive Bayes beats the majority."""
    rng = np.random.default_rng(0)
    model, wrong, spam = NB3(), 0, 0
    for step in range(600):
        y = bool(rng.random() < 0.2)
        common = {f"w{j}": 1.0 for j in rng.integers(0, 40, 10) + 10 * y}
        x = common | {f"once {step} {j}": 1.0 for j in range(10)}
        wrong += step > 100 and model.predict_one(x) != y
        spam += step > 100 and y
        model.learn_one(x, y)
    assert wrong < 0.8 * spam
