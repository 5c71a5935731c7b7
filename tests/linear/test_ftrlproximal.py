import numpy as np
import pytest

from tests.oracles.ftrlproximal import PlainFTRLProximal
from tests.oracles.harness import ONE, SETTINGS, follow, follow_in, stream
from varifold import FTRLProximal

FORMS = [{}, {"alpha": 0.5, "beta": 0.1, "L1": 0.5, "L2": 0.3}, {"L1": 3.0}]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_follows_the_equations(form, setting):
    whole = {"alpha": 0.1, "beta": 1.0, "L1": 0.0, "L2": 0.0, **form}
    follow_in(lambda **kw: FTRLProximal(**form, **kw), lambda: PlainFTRLProximal(**whole, intercept=ONE), setting)


def test_l1_gives_exact_zeros():
    rng = np.random.default_rng(0)
    model = FTRLProximal(L1=20.0)
    for _ in range(400):
        x = {f"noise {j}": rng.normal() for j in range(5)} | {"signal": rng.normal()}
        model.learn_one(x, x["signal"] > 0)
    weights = {name: feature.weight for name, feature in model.features.items()}
    assert weights.pop("signal") > 0
    assert set(weights.values()) == {0.0}


@pytest.mark.parametrize("labels", [2, 3])
def test_more_features_present_than_are_stepped_together(labels):
    rows = [row for row in stream(n=40, d=300, labels=labels) if row[0]]
    assert max(len(x) for x, _, _ in rows) > 128
    form = {"alpha": 0.1, "beta": 1.0, "L1": 0.5, "L2": 0.0}
    follow(FTRLProximal(**form), lambda: PlainFTRLProximal(**form, intercept=ONE), rows)
