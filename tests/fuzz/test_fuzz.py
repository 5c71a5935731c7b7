"""Hostile instances through every learner: 3,000 per learner with the other tests, 10^6 with `make fuzz`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import varifold
from tests.fuzz import extreme_values
from varifold.checks.material import is_regressor, state
from varifold.errors import VarifoldError

LENGTH = 200
BLOCKS = 2000
PARTS = 4


def settings_of(name: str, seed: int) -> Any:
    """One of the learner's forms with random settings around it."""
    rng = random.Random(f"{name} {seed}")
    cls: Any = varifold.models[name]
    params = dict(rng.choice(list(cls._unit_test_params())))
    around = {
        "scale": rng.choice(("standard", "robust", "minmax", "none")),
        "fit_intercept": rng.random() < 0.7,
        "max_features": rng.choice((None, None, 1, 3, 16, 40)),
        "evict": rng.choice(("oldest", "lightest")),
    }
    taken = cls()._get_params()
    return cls(**{**{k: v for k, v in around.items() if k in taken}, **params})


@contextmanager
def named(name: str, seed: int, learner: Any) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"in episode {seed} of {name}: {learner!r}")
        raise


def shares(instances: int) -> tuple[int, int]:
    """(episodes of dicts, of blocks) of a part: dicts up to 2 * 10^4 instances, blocks beyond."""
    dicts = min(instances, 20_000)
    return max(1, dicts // LENGTH // PARTS), -(-(instances - dicts) // BLOCKS // PARTS)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", list(varifold.models))
def test_seeded(name: str, part: int, request: pytest.FixtureRequest) -> None:
    dicts, _ = shares(request.config.getoption("--instances"))
    for seed in range(part * 1_000_003, part * 1_000_003 + dicts):
        learner = settings_of(name, seed)
        with named(name, seed, learner):
            extreme_values.episode(learner, seed, LENGTH)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", list(varifold.models))
def test_seeded_blocks(name: str, part: int, request: pytest.FixtureRequest) -> None:
    """Instances made with NumPy, so that 10^6 of them are soon made; every sixteenth life goes through both APIs."""
    _, blocks = shares(request.config.getoption("--instances"))
    for k in range(max(1, blocks)):
        seed = part * 1_000_003 + k
        learner = settings_of(name, seed)
        with named(name, seed, learner):
            extreme_values.block_episode(learner, seed, BLOCKS if blocks else LENGTH, compare=k % 16 == 0)


def known(pool: list[Any], bad: list[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(pool), st.sampled_from(pool), st.sampled_from(bad))


NAME = st.one_of(known(extreme_values.NAMES, extreme_values.BAD_NAMES), st.text(max_size=3), st.integers())
VALUE = st.one_of(
    st.floats(),
    st.floats(-3, 3),
    st.integers(),
    st.booleans(),
    st.decimals(),
    st.text(max_size=2),
    known(extreme_values.NUMBERS, extreme_values.BAD_VALUES),
    st.sampled_from(extreme_values.ABSENT),
)
LABEL = known(extreme_values.LABELS, extreme_values.BAD_LABELS)
TARGET = st.one_of(st.floats(), st.integers(), known(extreme_values.TARGETS, extreme_values.BAD_TARGETS))


def row(target: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.dictionaries(NAME, VALUE, max_size=6), target, st.sampled_from([1.0, 0.5, 0.0]))


@pytest.mark.parametrize("name", list(varifold.models))
def test_hypothesis(name: str, request: pytest.FixtureRequest) -> None:
    target = TARGET if is_regressor(varifold.models[name]()) else LABEL
    examples = min(500, max(10, request.config.getoption("--instances") // 1000))

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(rows=st.lists(row(target), max_size=25), seed=st.integers(0, 50))
    def lives(rows: list[Any], seed: int) -> None:
        learner = settings_of(name, seed)
        fresh, taken = learner.clone(), []
        for row in rows:
            extreme_values.assert_predictions(learner, row[0])
            if extreme_values.accepted(learner.learn_one, *row):
                taken.append(row)
        extreme_values.assert_whole(learner)
        extreme_values.second_api(fresh, taken, random.Random(seed))
        assert state(fresh) == state(learner)

    lives()


@pytest.mark.parametrize("name", list(varifold.models))
def test_a_long_life_under_a_small_bound(name: str) -> None:
    """Growth, eviction and return, dicts and blocks in turn, vocabularies old and new."""
    rng = random.Random(11)
    one = varifold.models[name](max_features=9, evict="lightest")
    other = one.clone()
    vocabulary = varifold.Vocabulary()
    for _ in range(40):
        rows = [{f"w{rng.randrange(60)}": rng.gauss(0, 1) for _ in range(rng.randrange(12))} for _ in range(12)]
        for x in rows:
            if rng.random() < 0.5:
                x["kind"] = f"k{rng.randrange(20)}"
        y = [rng.randrange(3) for _ in rows]
        for x, label in zip(rows, y, strict=True):
            one.learn_one(x, label)
        if rng.random() < 0.3:
            vocabulary = varifold.Vocabulary()
        if rng.random() < 0.7:
            other.learn_many(varifold.to_block(rows, y, vocabulary=vocabulary, numeric=is_regressor(one)))
        else:
            for x, label in zip(rows, y, strict=True):
                other.learn_one(x, label)
        try:
            other.predict_many(rows)
        except VarifoldError as error:
            raise AssertionError("known rows were rejected") from error
        assert state(one) == state(other)
    extreme_values.assert_whole(one)
