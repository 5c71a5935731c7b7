"""The t-digest against its oracle, the truth, and the libraries that have one."""

import pickle

import numpy as np
import pytest

from tests.oracles.tdigest import DigestOracle
from varifold.errors import DataError, ParameterError
from varifold.forest._tdigest import TDigest

N = 20_000
SHARES = [0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999]


def distributions():
    rng = np.random.default_rng(0)
    return {
        "uniform": rng.uniform(size=N),
        "normal": rng.normal(size=N),
        "exponential": rng.exponential(size=N),
        "lognormal": rng.lognormal(0, 2, size=N),
        "cauchy": rng.standard_cauchy(size=N),
        "two humps": np.where(rng.random(N) < 0.4, rng.normal(-3, 1, N), rng.normal(3, 1, N)),
        "poisson": rng.poisson(4, N).astype(float),
        "mostly zero": np.where(rng.random(N) < 0.7, 0.0, rng.exponential(size=N)),
        "ascending": np.arange(N, dtype=float),
        "descending": -np.arange(N, dtype=float),
    }


DISTRIBUTIONS = distributions()


def digest_of(values, compression=100.0):
    digest = TDigest(compression)
    digest.update(values)
    return digest


def rank_errors(values, at, share):
    """How far `share` lies outside the range of ranks that each value of `at` has."""
    ordered = np.sort(values)
    low = np.searchsorted(ordered, at, side="left") / len(values)
    high = np.searchsorted(ordered, at, side="right") / len(values)
    return np.maximum(np.maximum(low - share, share - high), 0.0)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_ranks_are_near_the_truth(name):
    values = DISTRIBUTIONS[name]
    digest = digest_of(values)
    shares = np.array(SHARES)
    allowed = 0.0005 + 0.012 * np.sqrt(shares * (1 - shares))
    assert (rank_errors(values, digest.quantile(shares), shares) <= allowed).all()
    at = np.quantile(values, shares)
    assert (rank_errors(values, at, digest.cdf(at)) <= allowed).all()
    assert len(digest) <= 132


def test_values_that_repeat_are_exact():
    values = DISTRIBUTIONS["poisson"]
    at = np.array([-1.0, 0.0, 0.5, 3.0, 3.0001, 40.0])
    assert digest_of(values).cdf(at).tolist() == pytest.approx([(values < a).mean() for a in at], abs=1e-12)


@pytest.mark.parametrize("compression", [10.0, 35.0, 100.0])
@pytest.mark.parametrize("kind", ["normal", "mostly zero", "whole numbers"])
def test_follows_the_oracle(kind, compression):
    rng = np.random.default_rng(1)
    digest, oracle = TDigest(compression), DigestOracle(compression)
    for i in range(1500):
        x = float(rng.normal() if kind == "normal" else max(rng.normal(), 0.0))
        x = float(np.round(rng.normal(0, 60))) if kind == "whole numbers" else x
        w = float(rng.choice([1.0, 0.25, 3.0]))
        digest.add(x, w)
        oracle.add(x, w)
        if i % 50 == 7:
            at = rng.normal(0, 60 if kind == "whole numbers" else 1, 5)
            assert (digest.cdf(at) * oracle.total).tolist() == pytest.approx([oracle.below(a) for a in at], abs=1e-9)
            shares = rng.random(5)
            assert digest.quantile(shares).tolist() == pytest.approx(
                [oracle.at(q * oracle.total) for q in shares], rel=1e-9, abs=1e-9
            )
    values, weights, points = digest.centroids()
    oracle.flush()
    assert np.column_stack([values, weights, points]) == pytest.approx(np.array(oracle.centroids, dtype=float))


def test_merged_parts_know_what_the_whole_knows():
    values = DISTRIBUTIONS["lognormal"]
    parts = [digest_of(part) for part in np.array_split(values, 7)]
    for part in parts[1:]:
        parts[0].merge(part)
    shares = np.array(SHARES)
    assert parts[0].total == N
    assert (
        rank_errors(values, parts[0].quantile(shares), shares) <= 0.0015 + 0.02 * np.sqrt(shares * (1 - shares))
    ).all()
    empty = TDigest()
    empty.merge(parts[0])
    empty.merge(TDigest())
    assert empty.quantile(shares).tolist() == parts[0].quantile(shares).tolist()


def test_a_copy_continues_as_the_original():
    digest = digest_of(DISTRIBUTIONS["normal"][:1010])
    copy = pickle.loads(pickle.dumps(digest))
    for d in (digest, copy):
        d.update(DISTRIBUTIONS["normal"][1010:3000])
    assert [a.tolist() for a in copy.centroids()] == [a.tolist() for a in digest.centroids()]


def test_the_edges():
    digest = TDigest()
    assert digest.cdf([0.0]).tolist() == [0.0]
    assert np.isnan(digest.quantile([0.5])).all()
    digest.add(3.0)
    assert digest.cdf([3.0, 3.1]).tolist() == [0.0, 1.0]
    assert digest.quantile([0.0, 0.5, 1.0]).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(DataError, match="finite"):
        digest.add(float("nan"))
    with pytest.raises(DataError, match="finite"):
        digest.update([1.0, float("inf")])
    with pytest.raises(DataError, match="between 0 and 1"):
        digest.quantile([1.5])
    with pytest.raises(DataError, match="itself"):
        digest.merge(digest)
    with pytest.raises(ParameterError, match="compression"):
        TDigest(1.0)


def fastdigest_quantiles(values):
    fastdigest = pytest.importorskip("fastdigest", reason="fastdigest is not installed")
    digest = fastdigest.TDigest(max_centroids=100)
    digest.batch_update(values.tolist())
    return [digest.quantile(q) for q in SHARES]


def crick_quantiles(values):
    crick = pytest.importorskip("crick", reason="crick is not installed")
    digest = crick.TDigest(compression=100)
    digest.update(values)
    return digest.quantile(np.array(SHARES))


@pytest.mark.parametrize("peer", [fastdigest_quantiles, crick_quantiles])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_ranks_are_as_good_as_other_digests(name, peer):
    values, shares = DISTRIBUTIONS[name], np.array(SHARES)
    ours = rank_errors(values, digest_of(values).quantile(shares), shares)
    assert ours.max() <= rank_errors(values, np.array(peer(values)), shares).max() + 0.0015
