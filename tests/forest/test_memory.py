"""Memory that runs out while ORF3V learns: an exception, and a learner that goes on. Memory that it gives back."""

import random
import subprocess
import sys
import textwrap

import pytest

from varifold import ORF3V

SCRIPT = """
    import resource
    import numpy as np
    from varifold import ORF3V, to_block

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 300))
    y = (X[:, 0] > 0).tolist()
    block = to_block(X, y)
    model = ORF3V(compression=10_000)
    model.learn_many(block[:100])
    held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + 8_000_000, resource.RLIM_INFINITY))
    try:
        model.learn_many(block[100:])
    except MemoryError as error:
        message = str(error)
    else:
        message = "none"
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    step = model._engine.step
    seen = model.features[0].count
    right = model.predict_many(block) == np.array(y)
    model.learn_many(block[step:])
    print(message)
    print(100 < step < 4000, seen == step, right.mean() > 0.6, model._engine.step)
    model.save("kept")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited by RLIMIT_AS")
def test_no_memory_left_is_an_exception_after_which_learning_goes_on(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    message, facts = done.stdout.splitlines()
    assert message.startswith("no memory was left: ")
    assert facts == "True True True 4000"


def churning(levels, lifetime, count, seed=0):
    """A column that is always there and whose strings change for ever, next to one of four strings."""
    rng = random.Random(seed)
    for step in range(count):
        version = f"v{step // lifetime * levels + rng.randrange(levels)}"
        yield {"version": version, "site": rng.choice("nesw")}, rng.random() < 0.5


def test_levels_that_have_vanished_are_given_up():
    model = ORF3V(window=50)
    held = []
    for x, y in churning(20, 100, 6000):
        model.learn_one(x, y)
        held.append(len(model.features))
    assert max(held[2000:]) <= max(held[:2000]) + 20
    assert model._engine.nbytes()["model"] < 1_000_000
    assert {f"site={level}" for level in "nesw"} <= model.features.keys()
    assert any("vanished" in note for note in model._engine.model.notes())


def test_few_levels_are_never_given_up():
    model = ORF3V(window=50)
    for x, y in churning(20, 2000, 6000):
        model.learn_one(x, y)
    assert len(model.features) == 64


def test_levels_stay_without_the_rule_for_gaps():
    model = ORF3V(window=50, prune="hoeffding")
    for x, y in churning(20, 100, 2000):
        model.learn_one(x, y)
    assert len(model.features) == 4 + len({x["version"] for x, _ in churning(20, 100, 2000)})


def test_a_level_that_returns_starts_again():
    model = ORF3V(window=50)
    for x, y in churning(20, 100, 3000):
        model.learn_one(x, y)
    assert "version=v0" not in model.features
    model.learn_one({"version": "v0"}, True)
    assert model.features["version=v0"].count == 1


@pytest.mark.parametrize("slot", [-1, 10**6])
def test_a_slot_that_there_is_not_is_rejected(slot):
    model = ORF3V()
    model.learn_one({"a": 1.0}, True)
    for call in (model._engine.model.role, model._engine.model.feature_distribution):
        with pytest.raises(IndexError, match="no feature has the slot"):
            call(slot)
