"""Streams without any order in what joins and goes: both APIs and a copy agree to the bit, predictions stay finite."""

import pickle

import numpy as np
import pytest

import varifold


def disorder(seed, n=250):
    """(x, y, w): names come in batches and go in batches; enormous values, levels, up to five labels."""
    rng = np.random.default_rng(seed)
    alive, fresh = set(), 0
    for step in range(n):
        if rng.random() < 0.06 or not alive:
            batch = int(rng.integers(1, 8))
            alive |= set(range(fresh, fresh + batch))
            fresh += batch
        if rng.random() < 0.06:
            alive = {name for name in alive if rng.random() < 0.5}
        x = {}
        for name in alive:
            if rng.random() < 0.9:
                number = 1e150 if rng.random() < 0.01 else float(rng.normal() * 10.0 ** rng.integers(-3, 4))
                x[f"f{name}"] = str(rng.integers(4)) if name % 5 == 0 else number
        yield x, int(rng.integers(1 + min(4, step // 30))), float(rng.choice([1, 1, 0.5, 2, 0]))


def settings(seed):
    rng = np.random.default_rng([seed, 1])
    chosen = {
        "settle": int(rng.integers(1, 20)),
        "patience": int(rng.integers(2, 30)),
        "scale": str(rng.choice(["standard", "none", "minmax"])),
        "fit_intercept": bool(rng.random() < 0.5),
        "max_dense": int(rng.choice([2, 6, 512])),
        "max_features": [5, 9, 20, None][rng.integers(4)],
        "evict": str(rng.choice(["oldest", "lightest"])),
    }
    return chosen | ({"switch": 50, "overlap": int(rng.integers(20))} if rng.random() < 0.3 else {})


def same(first, second):
    one, other = first._engine.dump()[2], second._engine.dump()[2]
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key], err_msg=key)


@pytest.mark.parametrize("seed", range(14))
def test_disorder(seed):
    name, part = [
        ("cwfe", "both"),
        ("pafe", "both"),
        ("fesl", "both"),
        ("cwfe", "updated"),
        ("cwfe", "frozen"),
        ("cwfe", "new"),
        ("pafe", "new"),
    ][seed % 7]
    instances = list(disorder(seed))
    one, many = (varifold.models[name](part=part, **settings(seed)) for _ in range(2))
    for step, (x, y, w) in enumerate(instances):
        if step % 3 == 0 and x and len(one.classes) > 1:
            margins, parts = one.margins_one(x), one.explain_one(x)
            assert np.isfinite(list(margins.values())).all()
            size = max([1.0, *(abs(part) for part in parts.values())])
            assert abs(sum(parts.values()) - max(margins.values())) <= 1e-6 * size
        one.learn_one(x, y, w)
    many.learn_many([x for x, _, _ in instances], [y for _, y, _ in instances], [w for _, _, w in instances])
    same(one, many)
    copy = pickle.loads(pickle.dumps(one))
    for x, y, w in instances[:40]:
        one.learn_one(x, y, w)
        copy.learn_one(x, y, w)
    same(one, copy)


def corrupted():
    """(array, what is done to it): each would be read or written beyond what is held."""
    beyond, shorter, longer = (lambda a: a + 10**6), (lambda a: a[:-1]), (lambda a: np.concatenate([a, a]))
    yield from ((key, beyond) for key in ("map.input", "map.output", "overlap.input", "overlap.output", "overlap.lead"))
    yield from ((key, beyond) for key in ("rule0.slots", "rule1.slots", "pair"))
    yield from ((key, longer) for key in ("map.matrix", "overlap.a", "overlap.y", "rule0.slots", "phases.group"))
    yield from ((key, shorter) for key in ("map.mean", "map.unit", "map.base", "pair", "experts", "course"))
    yield from ((key, shorter) for key in ("overlap.lead", "overlap.count", "phases.count", "phases.level"))
    yield "phases.group", lambda a: a + 100
    yield "phases.count", lambda a: a - 10**6
    yield "rule0.spare", lambda a: np.arange(1, 4, dtype=np.int32)
    yield "map.input", lambda a: a.astype(np.float64)


@pytest.mark.parametrize(("key", "corrupt"), list(corrupted()))
def test_a_corrupted_state_is_rejected(key, corrupt):
    rng = np.random.default_rng(3)
    model = varifold.CWFE()
    for step in range(140):
        a, b, c = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
        x = {f"a{j}": v for j, v in enumerate(a)} if step < 60 else {}
        x |= {f"b{j}": v for j, v in enumerate(a + b)} if step >= 50 else {}
        x |= {f"c{j}": v for j, v in enumerate(b + c)} if step >= 130 else {}
        model.learn_one(x, bool(a[0] > 0))
    names, labels, arrays = model._engine.dump()
    full = next(name for name in arrays if name.endswith(key))
    fresh = varifold.CWFE()
    fresh._engine.fill(names, labels, dict(arrays))
    with pytest.raises(ValueError, match=r"belong|has the shape|holds numbers"):
        varifold.CWFE()._engine.fill(names, labels, {**arrays, full: corrupt(arrays[full])})
