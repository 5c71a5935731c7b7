"""Answers by probability over prior."""

from __future__ import annotations

import numpy as np
import pytest

import varifold
from varifold import Block
from varifold.bench.balanced import Balanced
from varifold.errors import ParameterError
from varifold.evaluate import prequential


def rare(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        y = "rare" if rng.random() < 0.1 else "common"
        yield {f"f{j}": float(rng.normal(0.8 * (y == "rare"))) for j in range(4) if rng.random() < 0.8}, y


def test_rare_labels_are_found_more_often():
    plain, balanced = (prequential(m, list(rare())) for m in (varifold.GaussianNB(), Balanced("gaussiannb")))
    assert balanced.balanced_accuracy > plain.balanced_accuracy + 0.1
    assert balanced.auroc == plain.auroc, "probabilities stay the learner's"


def test_blocks_and_instances_agree():
    pairs = list(rare(400))
    one, other = Balanced("arow"), Balanced("arow")
    answers = []
    for x, y in pairs:
        answers.append(one.predict_one(x))
        one.learn_one(x, y)
    found = []
    for part in (pairs[:150], pairs[150:]):
        codes, _ = other.run_block(Block.from_dicts([x for x, _ in part], [y for _, y in part]))
        found += [other.classes[c] if c >= 0 else None for c in codes]
    assert found == answers
    assert other.counts == one.counts


def test_labels_must_come_at_once():
    with pytest.raises(ParameterError, match="leave out the delay"):
        prequential(Balanced("arow"), list(rare(50)), delay=3)
