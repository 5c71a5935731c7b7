"""Repeats: seeds, permutations, statistics, processes, and how progress is reported."""

from typing import ClassVar

import numpy as np
import pytest

import varifold
from varifold import streams
from varifold.errors import ParameterError
from varifold.evaluate import METRICS, prequential, repeat


def made(n=300, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 5)) * [1, 10, 100, 1, 1] + codes[:, None] * [1, 10, 100, 0, 0] + 3
    return varifold.to_block(X, np.where(codes, "yes", "no"), names=list("abcde"))


def test_repeat_r_is_the_stream_of_seed_plus_r():
    block = made()
    summary = repeat(varifold.OLVF, block, scenario="vfs:0.5", repeats=4, seed=10)
    assert summary.seeds == [10, 11, 12, 13]
    singles = [prequential(varifold.OLVF(), streams.prepare(block, "vfs:0.5", seed=10 + r)).cer for r in range(4)]
    assert summary.values("cer").tolist() == singles
    assert len(set(singles)) > 1
    assert summary.cer == pytest.approx(np.mean(singles))
    assert summary.std("cer") == pytest.approx(np.std(singles, ddof=1))
    assert set(summary.metrics()) == set(METRICS)
    assert summary.learner.steps == len(block)


def test_every_learner_sees_the_same_streams():
    class Notes:
        seen: ClassVar[list] = []

        def learn_one(self, x, y):
            self.seen.append((tuple(sorted(x.items())), y))

        def predict_one(self, x):
            return None

    def rows():
        Notes.seen = []
        repeat(Notes, made(), scenario="vfs:0.5", repeats=2, seed=3)
        return Notes.seen

    assert rows() == rows()


def test_without_shuffle_only_the_mask_differs():
    summary = repeat(varifold.OLVF, made(), repeats=3, shuffle=False)
    assert summary.std("cer") == pytest.approx(0.0, abs=1e-12)
    assert repeat(varifold.OLVF, made(), scenario="vfs:0.5", repeats=3, shuffle=False).std("cer") > 0.0


def test_scale_paper_looks_ahead_over_the_whole_set():
    def make():
        return varifold.OLVF(scale="none", fit_intercept=False)

    raw = repeat(make, made(), repeats=2)
    ahead = repeat(make, made(), repeats=2, scale="paper")
    expected = prequential(make(), streams.prepare(streams.zscore(made()), seed=0)).cer
    assert ahead.results[0].cer == expected
    assert ahead.cer < raw.cer


def test_processes_give_the_same_numbers():
    pytest.importorskip("joblib")
    progress = []
    one = repeat(varifold.AROW, made(), scenario="vfs:0.5", repeats=3)
    two = repeat(varifold.AROW, made(), scenario="vfs:0.5", repeats=3, jobs=2, progress=progress.append)
    assert one.values("log_loss").tolist() == two.values("log_loss").tolist()
    assert progress == [1, 2, 3]
    assert two.learner.steps == 300


def test_delay_of_the_scenario_and_of_the_call():
    by_scenario = repeat(varifold.OLVF, made(), scenario="delay:40", repeats=2)
    by_call = repeat(varifold.OLVF, made(), delay=40, repeats=2)
    assert by_scenario.values("cer").tolist() == by_call.values("cer").tolist()
    assert by_call.cer > repeat(varifold.OLVF, made(), repeats=2).cer


def test_one_repeat_has_no_spread_and_none_is_rejected():
    assert repeat(varifold.OLVF, made(), repeats=1).std("cer") == 0.0
    assert "1 repeat: cer" in str(repeat(varifold.OLVF, made(), repeats=1))
    with pytest.raises(ParameterError, match="repeats"):
        repeat(varifold.OLVF, made(), repeats=0)
    with pytest.raises(ParameterError, match="scale"):
        repeat(varifold.OLVF, made(), scale="standard")


def test_what_cannot_be_repeated_is_rejected():
    block = made(20)
    with pytest.raises(ParameterError, match=r"class or function .* Got a OLVF instead"):
        repeat(varifold.OLVF(), block)
    for bad in ({"repeats": 0}, {"repeats": 1.5}, {"jobs": 0}, {"seed": -1}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            repeat(varifold.OLVF, block, **bad)
