"""OVFM's Algorithm 1 with its delayed predictions."""

import copy
import math
import pickle

import numpy as np
import pytest

from tests.oracles.copula import PlainCopula
from varifold import Block
from varifold.copula.buffer import BufferCopula
from varifold.copula.delayed import DelayedOVFM
from varifold.errors import DataError, FeatureValueError, LabelError, ParameterError


def rows(n=60, d=5, seed=0):
    """Correlated columns, the second of three levels and the third Boolean, a third of the cells absent."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d))
    X = rng.normal(size=(n, d)) @ mix
    y = X @ rng.normal(size=d) > 0
    X[:, 1] = np.digitize(X[:, 1], [-1, 1])
    X[:, 2] = X[:, 2] > 0
    there = rng.random((n, d)) < 0.67
    return [{f"f{j}": float(X[i, j]) for j in range(d) if there[i, j]} for i in range(n)], y.astype(int).tolist()


def test_a_fit_is_expectation_maximisation():
    xs, _ = rows(40)
    ours = BufferCopula(levels=4, sweeps=2, tolerance=0.0, iterations=3, c=0.0, gamma_min=0.3)
    plain = PlainCopula(W=1000, levels=4, sweeps=2)
    for x in xs:
        ours.admit(x)
        plain.meet(x)
    names = list(ours.index)
    order = [plain.names.index(name) for name in names]
    assert ours.fit(xs) == 3
    for name in names:  # a row of the buffer is among the values its place is read from
        plain.marginals[name].values = sorted(x[name] for x in xs if name in x)
    for _ in range(3):
        moment = np.zeros_like(plain.sigma)
        for x in xs:
            for name, value in x.items():  # the oracle adds the value of the row itself
                plain.marginals[name].values.remove(value)
            z, C, _ = plain.e_step(x)
            moment += (np.outer(z, z) + C) / len(xs)
            for name, value in x.items():
                plain.marginals[name].values.append(value)
        mixed = 0.7 * plain.sigma + 0.3 * moment
        scale = np.sqrt(np.diag(mixed))
        plain.sigma = mixed / np.outer(scale, scale)
    np.testing.assert_allclose(ours.sigma, plain.sigma[np.ix_(order, order)], rtol=0, atol=1e-12)


def test_em_ends_when_the_correlation_stays():
    xs, _ = rows(60)
    copula = BufferCopula(levels=4, sweeps=2, tolerance=1e-4, iterations=500, c=0.0, gamma_min=0.5)
    for x in xs:
        copula.admit(x)
    taken = copula.fit(xs)
    assert 3 < taken < 500
    before = copula.sigma.copy()
    assert copula.fit(xs) == 1, "a further fit starts where the last one ended"
    assert np.linalg.norm(copula.sigma - before) <= 1e-4
    assert np.abs(before - np.eye(len(before))).max() > 0.2


def test_an_answer_sees_the_buffer_and_nothing_after_it():
    xs, ys = rows(40)
    changed = [*xs[:25], *({name: 100.0 + v for name, v in x.items()} for x in xs[25:])]
    params = {"buffer": 6, "levels": 3, "tolerance": 0.1}
    one = DelayedOVFM(**params).run_block(Block.from_dicts(xs, ys))[1]
    other = DelayedOVFM(**params).run_block(Block.from_dicts(changed, ys))[1]
    assert np.array_equal(one[:20], other[:20])
    assert not np.array_equal(one[20], other[20]), "row 20 is predicted when row 25 is in the buffer"


def test_without_a_buffer_it_is_online():
    xs, ys = rows(40)
    block, online = DelayedOVFM(buffer=1).run_block(Block.from_dicts(xs, ys)), DelayedOVFM(buffer=1)
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        online._join(x)
        online._copula.fit([x])
        shares = online.predict_proba_one(x)
        assert list(shares.values()) == pytest.approx([p for p in block[1][i] if p or len(shares) == 2])
        online._learn(x, y)


def test_it_learns_and_the_paths_agree():
    xs, ys = rows(160, seed=3)
    codes, shares = DelayedOVFM(buffer=8, tolerance=0.1).run_block(Block.from_dicts(xs, ys))
    order = list(dict.fromkeys(ys))
    right = [order[c] == y for c, y in zip(codes[60:], ys[60:], strict=True)]
    assert np.mean(right) > 0.7
    assert shares.sum(axis=1)[1:] == pytest.approx(1.0)
    model = DelayedOVFM(buffer=8, tolerance=0.1, radius=0.5, horizon=160)
    for x, y in zip(xs[:60], ys, strict=False):
        model.learn_one(x, y)
    assert np.abs(model._weights).sum(axis=2).max() <= 0.5 + 1e-12
    assert model.predict_one(xs[0]) in (0, 1)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_on_to_the_bit(duplicate):
    xs, ys = rows(40, seed=5)
    model = DelayedOVFM(buffer=6, tolerance=0.1)
    for x, y in zip(xs[:20], ys, strict=False):
        model.learn_one(x, y)
    other = duplicate(model)
    for each in (model, other):
        for x, y in zip(xs[20:], ys[20:], strict=True):
            each.learn_one(x, y)
    assert [model.predict_proba_one(x) for x in xs] == [other.predict_proba_one(x) for x in xs]


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ({"a": math.inf}, 0, FeatureValueError, "feature 'a' is inf; drop the key"),
        ({"a": 1.0, "b": [1]}, 0, FeatureValueError, r"feature 'b' is \[1\] of type list"),
        ({"a": "red"}, 0, DataError, "holds strings"),
        (5, 0, DataError, "of type int; pass a mapping"),
        ({"a": 1.0}, None, LabelError, "the label is None"),
    ],
)
def test_what_is_rejected_changes_nothing(x, y, error, message):
    model = DelayedOVFM(buffer=4)
    for i in range(3):
        model.learn_one({"a": float(i)}, i % 2)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_huge_numbers_stay_finite():
    model = DelayedOVFM(buffer=2)
    for i in range(12):
        model.learn_one({"a": 1e308 if i % 2 else -1e308, "b": float(i)}, i % 2)
    assert all(math.isfinite(p) for p in model.predict_proba_one({"a": 1e308}).values())


def test_what_it_rejects():
    with pytest.raises(DataError, match="holds strings"):
        DelayedOVFM().learn_one({"a": "red"}, 0)
    with pytest.raises(ParameterError, match="the correlation never moves"):
        DelayedOVFM(c=0.0, gamma_min=0.0)
    with pytest.raises(ParameterError, match="'buffer' parameter of DelayedOVFM"):
        DelayedOVFM(buffer=0)
    with pytest.raises(ParameterError, match="without delay"):
        DelayedOVFM().run_block(Block.from_dicts([{"a": 1.0}], [0]), np.array([1, -1]))


class PlainDelayed:
    """Lines 10 to 16 of Algorithm 1 by label, one versus rest, over views that the copula of the learner gives."""

    def __init__(self, radius, keep):
        self.radius, self.keep, self.t = radius, keep, 0
        self.w = {}  # label -> [raw, latent]: weights by column
        self.risk, self.rounds = {}, {}

    def mix(self, label):
        """Eq. 11 with the rate sqrt(8 ln 2 / t)."""
        rate = math.sqrt(8 * math.log(2) / (self.rounds[label] + 1))
        powers = [math.exp(-rate * (r - min(self.risk[label]))) for r in self.risk[label]]
        return [p / sum(powers) for p in powers]

    def score(self, label, views):
        own = [sum(w * v for w, v in zip(ws, view, strict=True)) for ws, view in zip(self.w[label], views, strict=True)]
        return own, sum(a * f for a, f in zip(self.mix(label), own, strict=True))

    def learn(self, views, y):
        if y not in self.w:
            first = next(iter(self.w), None)
            second = len(self.w) == 1
            self.w[y] = [[-w for w in ws] if second else [0.0] * len(views[0]) for ws in self.w.get(first, views)]
            self.risk[y] = list(self.risk[first]) if second else [0.0, 0.0]
            self.rounds[y] = self.rounds[first] if second else 0
        self.t += 1
        for label, both in self.w.items():
            sign = 1 if label == y else -1
            own, _ = self.score(label, views)
            self.rounds[label] += 1
            for i, (ws, view) in enumerate(zip(both, views, strict=True)):
                self.risk[label][i] += math.log1p(math.exp(-sign * own[i]))
                step = sign / math.sqrt(self.t) / (1 + math.exp(sign * own[i]))
                ws[:] = [w + step * v for w, v in zip(ws, view, strict=True)]
                total = sum(map(abs, ws))
                if total > self.radius:
                    ws[:] = [w * self.radius / total for w in ws]
                kept = sorted(range(len(ws)), key=lambda j: -abs(ws[j]))[: math.ceil(self.keep * len(ws))]
                ws[:] = [w if j in kept else 0.0 for j, w in enumerate(ws)]


@pytest.mark.parametrize("labels", [2, 3])
def test_follows_the_lines_of_algorithm_1(labels):
    """Any labels, the projection of eq. 12 and the share that is kept; all columns are in the first row."""
    xs, ys = rows(50, seed=2)
    xs[0] = {f"f{j}": 0.5 * j for j in range(5)}
    ys = [y if labels == 2 or i % 3 else 2 for i, y in enumerate(ys)]
    model, plain = DelayedOVFM(buffer=5, tolerance=0.1, radius=0.8, keep=0.6), PlainDelayed(0.8, 0.6)
    compared = 0
    for x, y in zip(xs, ys, strict=True):
        model._enter(model._numbers(x), y)
        if len(model._waiting) < 5:
            continue
        oldest, label = model._waiting[0]
        views = model._views(oldest).tolist()
        if len(plain.w) >= 2:
            odds = {k: 1 / (1 + math.exp(-plain.score(k, views)[1])) for k in plain.w}
            expected = {k: p / sum(odds.values()) for k, p in odds.items()}
            assert model._probabilities(oldest) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            compared += 1
        model._waiting.popleft()
        model._learn(oldest, label)
        plain.learn(views, label)
    assert compared > 30
    assert (np.count_nonzero(model._weights, axis=2) <= 3).all()


def test_the_step_of_the_correlation_decays():
    xs, _ = rows(30)
    fixed, decaying = (BufferCopula(4, 2, 0.0, 1, c, low) for c, low in ((0.0, 0.5), (1.0, 0.0)))
    for copula in (fixed, decaying):
        for x in xs:
            copula.admit(x)
    moves = []
    for copula in (fixed, decaying):
        sigma = []
        for _ in range(4):
            copula.fit(xs)
            sigma.append(copula.sigma)
        moves.append(sigma)
    # gamma of round k is 1 / (k + 1): 1, 1/2, 1/3, 1/4; with gamma = 1 the first round forgets the identity
    assert np.abs(moves[1][0] - np.eye(5)).sum() > 1.5 * np.abs(moves[0][0] - np.eye(5)).sum()
    assert np.linalg.norm(moves[1][3] - moves[1][2]) < np.linalg.norm(moves[0][3] - moves[0][2])
