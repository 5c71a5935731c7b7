"""Sensors that fall silent in groups: the experts that recall earlier values."""

import numpy as np

from tests.engines import class_engine
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import classifier_experts
from varifold.base import to_block
from varifold.cli.sensors import plant


def wrong(experts, sensors):
    block = to_block(sensors.readings, sensors.labels, names=sensors.names)
    codes, _, _ = class_engine(ClassificationMixture(experts)).run(block)
    order = list(dict.fromkeys(sensors.labels))
    return np.array([order[c] != y for c, y in zip(codes, sensors.labels, strict=True)])


def test_recall_lowers_the_error_while_groups_are_silent():
    silent, without, with_recall = [], [], []
    for seed in (100, 101, 102):
        sensors = plant(4000, seed)
        quiet = np.zeros(4000, dtype=bool)
        for _, first, end in sensors.outages():
            quiet[first:end] = True
        silent.append(quiet)
        without.append(wrong([e for e in classifier_experts("balanced") if not e.name.startswith("recall")], sensors))
        with_recall.append(wrong(classifier_experts("balanced"), sensors))
    recalling, plain, quiet = np.concatenate(with_recall), np.concatenate(without), np.concatenate(silent)
    assert recalling[quiet].mean() < 0.92 * plain[quiet].mean()
    assert recalling.mean() < 0.95 * plain.mean()
