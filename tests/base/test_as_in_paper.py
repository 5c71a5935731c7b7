"""Methods as their papers have them, by name and by specification."""

import pytest

import varifold
from varifold.base.nested import make_learner
from varifold.base.spec import parse_model
from varifold.errors import ParameterError
from varifold.linear._majority_bias import MajorityBias

NO_PAPER = {
    "additive",
    "additiveregressor",
    "arowregressor",
    "auto",
    "autoregressor",
    "copularegressor",
    "gaussiannb",
    "meanregressor",
    "neighbours",
    "neighboursregressor",
    "olvfregressor",
    "windowforest",
    "windowforestregressor",
}


def test_every_method_of_a_paper_has_a_form_as_in_it():
    for name, cls in varifold.models.items():
        if name in NO_PAPER:
            with pytest.raises(ParameterError, match=f"{cls.__name__} is of no paper"):
                cls.as_in_paper()
            with pytest.raises(ParameterError, match="is of no paper"):
                parse_model(f"{name}:paper")
        else:
            learner = cls.as_in_paper()
            assert learner._get_params() == parse_model(f"{name}:paper")()._get_params()
            assert name == "nb3" or learner._get_params() != cls()._get_params()


def test_the_pure_method_adds_nothing():
    for name in ("olvf", "olsf", "olids", "pa", "arow", "ftrladp", "cwfe", "fesl"):
        learner = varifold.models[name].as_in_paper()
        assert (learner.scale, learner.fit_intercept) == ("none", False)
        learner.learn_one({"a": 1.0}, "x")
        learner.learn_one({"a": 2.0}, "x")
        learner.learn_one({"a": -1.0}, "y")
        assert set(learner.margins_one({"a": 0.0}).values()) == {0.0}, "nothing leans to the commoner class"
    for name in ("ocds", "fobos", "ftrladp", "arow"):
        learner = varifold.models[name].as_in_paper(fit_intercept=True)
        assert learner.majority_bias is False
        assert not isinstance(learner._engine.model, MajorityBias)
    assert varifold.OLVF.as_in_paper().variant == "printed"
    assert varifold.OVFM.as_in_paper().presence is False
    assert varifold.OVFIV.as_in_paper().bias is False


def test_parameters_come_after_the_word():
    spec = parse_model("olvf:paper,C=0.5,scale=minmax")
    ours_left_out = {"fit_intercept": False, "majority_bias": False, "calibrate": False}
    assert dict(spec.params) == {"variant": "printed", "scale": "minmax", "C": 0.5, **ours_left_out}
    assert varifold.OLVF.as_in_paper(C=0.5).C == 0.5
    within = make_learner("olids:paper,C=0.5")
    assert (within.C, within.fit_intercept) == (0.5, False)
    with pytest.raises(ParameterError, match="not of the form key=value"):
        parse_model("olvf:C=0.5,paper")
    with pytest.raises(ParameterError, match="has no parameter 'D'"):
        parse_model("olvf:paper,D=1")


def test_a_class_from_outside_has_no_paper():
    with pytest.raises(ParameterError, match="GaussianNB is of no paper"):
        parse_model("river.naive_bayes:GaussianNB:paper", imports=True)
