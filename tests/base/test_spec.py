"""Spelling of learners: values keep their kind, learners nest, mistakes are named."""

import pickle

import pytest

import varifold
from varifold.base.nested import make_learner
from varifold.base.spec import Nested, parse_model, parse_value, split_pairs
from varifold.errors import ParameterError, UnknownNameError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-2", -2),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("None", None),
        ("none", "none"),
        ("adaptive", "adaptive"),
        ("'1'", "1"),
        ('"a,b"', "a,b"),
    ],
)
def test_values(text, value):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_parameters_reach_the_learner():
    learner = parse_model("olvf:C=0.5,B=0.25,variant=printed,scale=none,fit_intercept=false,max_features=None")()
    assert isinstance(learner, varifold.OLVF)
    assert (learner.C, learner.B, learner.variant, learner.scale) == (0.5, 0.25, "printed", "none")
    assert (learner.fit_intercept, learner.max_features) == (False, None)


def test_each_call_makes_a_new_learner_and_specs_travel():
    spec = pickle.loads(pickle.dumps(parse_model("arow:r=3")))
    assert spec() is not spec()
    assert spec().r == 3
    assert spec.having(r=4)().r == 4
    assert spec.accepts("r")
    assert not spec.accepts("C")


class Around:
    """A learner made of another."""

    def __init__(self, base="olvf", eta=0.1):
        self.base, self.eta = base, eta

    def learn_one(self, x, y): ...

    def predict_one(self, x): ...


def test_nested(monkeypatch):
    monkeypatch.setattr(varifold, "Around", Around, raising=False)
    plain = parse_model("varifold:Around:base=ftrladp,eta=adaptive", imports=True)()
    assert (plain.base, plain.eta) == ("ftrladp", "adaptive")
    spec = parse_model("varifold:Around:base=(olvf:C=0.5,B=0.5),eta=0.2", imports=True)
    assert isinstance(dict(spec.params)["base"], Nested)
    first, second = spec(), spec()
    assert (first.base.C, first.base.B, first.eta) == (0.5, 0.5, 0.2)
    assert first.base is not second.base
    deep = parse_model("varifold:Around:base=(varifold:Around:base=(arow:r=2)),eta=1", imports=True)()
    assert deep.base.base.r == 2


def test_river_class_with_parameters():
    assert parse_model("river.linear_model:LogisticRegression:l2=0.1", imports=True)().l2 == 0.1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("olv", UnknownNameError, "did you mean olvf"),
        ("olvf:Cbar=1", ParameterError, "did you mean C_bar"),
        ("olvf:,C=x", ParameterError, "must be a float"),
        ("olvf:=1", ParameterError, "key=value"),
        ("river.multiclass:OneVsRestClassifier", ParameterError, "needs classifier"),
        ("varifold:errors", ParameterError, "no class"),
        ("varifold:OLFV", UnknownNameError, "did you mean OLVF"),
    ],
)
def test_mistakes(text, error, message):
    with pytest.raises(error, match=message):
        parse_model(text, imports=True)


def test_pairs_between_commas():
    assert split_pairs("") == []
    assert split_pairs("0.5,mode=exact,") == [("0.5", None), ("mode", "exact")]
    assert split_pairs("a=b=numeric,c", last=True) == [("a=b", "numeric"), ("c", None)]


def test_true_false_and_none_are_words_where_the_parameter_is_a_str_and_values_elsewhere():
    text = "olvf:scale=none,max_features=none,fit_intercept=FALSE,C=0.5"
    for learner in (make_learner(text), parse_model(text)()):
        assert (learner.scale, learner.max_features, learner.fit_intercept, learner.C) == ("none", None, False, 0.5)
    with pytest.raises(ParameterError, match="'C' is given twice"):
        make_learner("olvf:C=1,C=2")


def test_numbers_in_parentheses() -> None:
    spec = parse_model("arow:coverages=(0.95,0.8),r=2")
    assert spec().coverages == (0.8, 0.95)
    assert parse_value("(0.9)") == (0.9,)
    assert parse_model("arow:coverages=()")().coverages == ()
    with pytest.raises(ParameterError, match="coverages"):
        parse_model("arow:coverages=(1.5)")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("(0.9,x)", r"'x' in '\(0.9,x\)' is neither a number nor a model; write numbers as \(0.8,0.95\)"),
        ("(0.9;0.95)", "'0.9;0.95' in .* is neither a number"),
        ("(x)", "'x' in .* is neither a number nor a model"),
        ("(olfv)", "did you mean olvf"),
    ],
)
def test_what_parentheses_cannot_hold_is_named(value: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_model(f"arow:coverages={value}")
