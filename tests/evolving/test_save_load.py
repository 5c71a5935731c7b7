"""The compiled model inside another one: it predicts, learns, grows, forgets and is saved there as it is alone."""

import numpy as np
import pytest

from tests.evolving.test_detected_switch import stream
from varifold import CWFE
from varifold.auto._classification import ClassificationMixture
from varifold.auto.experts import Expert
from varifold.base.classifier import VaryingClassifier
from varifold.linear._arow import AROWRule


class Holder(VaryingClassifier):
    """CWFE's model as one of two experts."""

    def _model(self):
        self.held = CWFE()._model()
        start = {"stack_weight": 0.5, "stack_variance": 0.5}
        arow = Expert(name="arow", model=lambda: AROWRule(10.0), **start)
        return ClassificationMixture([arow, Expert(name="cwfe", model=lambda: self.held, **start)])


SPANS = [(120, "a"), (15, "ab"), (60, "b"), (15, "bc"), (60, "c")]


@pytest.mark.parametrize("bound", [None, 14])
def test_held_it_is_what_it_is_alone(bound):
    instances = stream(SPANS, flicker=0.05, labels=3)
    holder, alone = Holder(max_features=bound), CWFE(max_features=bound)
    for x, y in instances:
        holder.learn_one(x, y)
        alone.learn_one(x, y)
    assert holder.held.switches() == alone.switches
    assert len(alone.switches) == 2
    size = alone._engine.space.size
    inside, outside = holder.held.dump(size), alone._engine.model.dump(size)
    assert inside.keys() == outside.keys()
    for key, array in outside.items():
        np.testing.assert_array_equal(inside[key], array, err_msg=key)


@pytest.mark.parametrize("stop", [100, 127, 140])
def test_held_it_is_saved_with_its_holder(stop, tmp_path):
    instances = stream(SPANS, labels=3)
    whole, parted = Holder(), Holder()
    for x, y in instances:
        whole.learn_one(x, y)
    for x, y in instances[:stop]:
        parted.learn_one(x, y)
    parted.save(tmp_path / "model")
    parted = Holder.load(tmp_path / "model")
    for x, y in instances[stop:]:
        parted.predict_proba_one(x)
        parted.learn_one(x, y)
    for x, _ in instances[-20:]:
        assert parted.predict_proba_one(x) == whole.predict_proba_one(x)
    assert parted.held.switches() == whole.held.switches()
