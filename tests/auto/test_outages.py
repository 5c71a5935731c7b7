"""Sensors that fall silent in groups: the experts that see absence and recall what was read before."""

import numpy as np
import pytest

from varifold._engine.classify import Engine
from varifold.auto._auto import AutoModel
from varifold.auto.classifier import _experts
from varifold.base import to_block
from varifold.cli.sensors import plant


def wrong(experts, made):
    codes, _ = Engine(AutoModel(experts)).run(to_block(made.readings, made.labels, names=made.names))
    order = list(dict.fromkeys(made.labels))
    return np.array([order[c] != y for c, y in zip(codes, made.labels, strict=True)])


@pytest.mark.parametrize("seed", [100, 101])
def test_recall_lowers_the_error_while_groups_are_silent(seed):
    made = plant(4000, seed)
    silent = np.zeros(4000, dtype=bool)
    for _, first, end in made.outages():
        silent[first:end] = True
    without = wrong([expert for expert in _experts("balanced") if not expert[0].startswith("recall")], made)
    with_recall = wrong(_experts("balanced"), made)
    assert with_recall[silent].mean() < 0.92 * without[silent].mean()
    assert with_recall.mean() < 0.95 * without.mean()
