"""Generate streams whose feature space is replaced, and compare a learner with its plain twin on them."""

import numpy as np

from tests.oracles.evolving import ONE
from tests.oracles.harness import Scaler


def replaced(before=120, overlap=8, after=120, d1=7, d2=5, labels=2, weights=False, flicker=0.0, stay=0, seed=0):
    """Yield (x, y, w): d1 old features, then a Gaussian mixture of them as new ones; `stay` old ones never leave."""
    rng = np.random.default_rng(seed)
    truth, mix = rng.normal(size=(labels, d1)), rng.normal(size=(d1, d2))
    shift = np.linspace(-1, 2, d1)
    for step in range(before + after):
        old = rng.normal(size=d1) * np.linspace(0.5, 2, d1) + shift
        y = int(np.argmax(truth @ (old - shift) + 0.3 * rng.normal(size=labels)))
        if y == 2 and step < before // 2:
            y = 0
        x = {}
        if step < before:
            x |= {f"a{j}": float(old[j]) for j in range(d1)}
        x |= {f"a{j}": float(old[j]) for j in range(stay)}
        if step >= before - overlap:
            x |= {f"b{j}": float(v) for j, v in enumerate(old @ mix)}
        x = {name: value for name, value in x.items() if rng.random() >= flicker}
        yield x, f"label {y}", float(rng.choice([1.0, 0.5, 3.0])) if weights else 1.0


def follow(learner, twin, instances, rtol=1e-8, atol=1e-8):
    """Learn with both and compare every margin before it is learned; return the number compared after the switch."""
    scaler = Scaler(learner.scale, learner.clip)
    intercept = {ONE: 1.0} if learner.fit_intercept else {}
    known, after = set(), 0
    for step, (x, y, w) in enumerate(instances):
        old = {name: value for name, value in x.items() if name in known}
        if old and len(twin.labels) > 1:
            expected = twin.scores({**intercept, **scaler.scaled(old, 1.0, commit=False)}, old)
            found = learner.margins_one(x)
            np.testing.assert_allclose(
                list(found.values()), list(expected.values()), rtol=rtol, atol=atol, err_msg=f"step {step}"
            )
            parts = learner.explain_one(x)
            np.testing.assert_allclose(sum(parts.values()), max(found.values()), rtol=1e-9, atol=1e-9)
            after += step >= twin.T1
        learner.learn_one(x, y, w)
        twin.meet(y)
        if x:
            twin.learn({**intercept, **scaler.scaled(x, w, commit=True)}, x, y, w)
        else:
            twin.step += 1
            scaler.learned += 1
        known |= set(x)
    assert learner.switches == [twin.T1]
    return after


def follow_numbers(learner, twin, instances, rtol=1e-9, atol=1e-9):
    """Run `follow` for a regressor: compare every prediction and explanation before it is learned."""
    scaler = Scaler(learner.scale, learner.clip)
    intercept = {ONE: 1.0} if learner.fit_intercept else {}
    known, after = set(), 0
    for step, (x, y, w) in enumerate(instances):
        old = {name: value for name, value in x.items() if name in known}
        if old and twin.targets:
            expected = twin.predict({**intercept, **scaler.scaled(old, 1.0, commit=False)}, old)
            found = learner.predict_one(x)
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=f"step {step}")
            np.testing.assert_allclose(sum(learner.explain_one(x).values()), found, rtol=1e-9, atol=1e-9)
            after += step >= twin.T1
        learner.learn_one(x, y, w)
        twin.targets.append((y, w))
        if x:
            twin.learn({**intercept, **scaler.scaled(x, w, commit=True)}, x, y, w)
        else:
            twin.step += 1
            scaler.learned += 1
        known |= set(x)
    assert learner.switches == [twin.T1]
    return after
