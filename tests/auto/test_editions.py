"""Model files name the edition of their experts and the experts themselves, and go on with them."""

import pickle
from pathlib import Path

import pytest

from tests.base.model_files import stream
from varifold import AutoClassifier
from varifold.auto.classifier import EDITION, _experts
from varifold.auto.first_edition import first_experts
from varifold.base import files
from varifold.errors import ModelFileError

KEPT = Path(__file__).parents[1] / "data" / "models"


def names(model):
    return list(model._engine.model.names)


def learned(model, count=40):
    for x, y in stream(count):
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize(("file", "budget"), [("auto", "balanced"), ("auto-fast", "fast")])
def test_a_file_without_an_edition_keeps_the_experts_of_the_first(file, budget):
    model = AutoClassifier.load(KEPT / f"{file}.safetensors")
    assert names(model) == [name for name, *_ in first_experts(budget)]
    again = AutoClassifier.from_bytes(learned(model).to_bytes())
    assert names(again) == names(model)
    assert pickle.loads(pickle.dumps(again)).to_bytes() == again.to_bytes()


def test_a_new_learner_has_the_experts_of_the_latest_edition_and_its_file_names_them():
    model = learned(AutoClassifier())
    header, _ = files.decode(model.to_bytes(), "test")
    assert header["edition"] == EDITION
    assert header["experts"] == [name for name, *_ in _experts("balanced")]
    assert "window forest" in header["experts"]


def test_a_learner_of_some_experts_is_saved_and_loaded_with_these():
    model = AutoClassifier()
    model._names = ["linear", "window forest"]
    model._engine = model._make_engine()
    learned(model)
    again = AutoClassifier.from_bytes(model.to_bytes())
    assert names(again) == ["linear", "window forest"]
    assert again.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("edition", EDITION + 1, "edition"), ("edition", "2", "edition"), ("experts", ["linear", "oracle"], "oracle")],
)
def test_unknown_editions_and_experts_are_refused(key, value, words):
    header, arrays = files.decode(learned(AutoClassifier()).to_bytes(), "test")
    with pytest.raises(ModelFileError, match=words):
        AutoClassifier.from_bytes(files.encode({**header, key: value}, arrays))
