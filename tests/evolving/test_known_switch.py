"""With a known switch every method and part follows the equations step by step."""

import pytest

import varifold
from tests.oracles import evolving as plain
from tests.oracles.switching import follow, replaced

T1, B = 60, 8
SETTINGS = [
    {"scale": scale, "fit_intercept": intercept, "labels": labels, "weights": weights, "flicker": flicker}
    for scale, intercept, labels, weights, flicker in [
        ("none", False, 2, False, 0.0),
        ("standard", True, 2, False, 0.0),
        ("standard", True, 3, True, 0.1),
        ("standard", False, 2, True, 0.1),
        ("none", True, 3, True, 0.2),
        ("minmax", True, 2, False, 0.1),
    ]
]
UPDATES = {
    "cwfe": (varifold.CWFE, plain.AROW, "hinge", False),
    "pafe": (varifold.PAFE, plain.PA, "hinge", True),
    "fesl": (varifold.FESL, plain.OGD, "logistic", False),
}
PARTS = ("new", "updated", "frozen")


def twin(make, part, setting, loss="hinge", transfer=False, **more):
    return plain.Evolving(
        make,
        part,
        T1,
        more.pop("overlap", B),
        loss=loss,
        transfer=transfer,
        centred=setting["fit_intercept"],
        spread=setting["scale"] != "none",
        bound=3.0 if setting["scale"] == "standard" else 0.0,
        **more,
    )


def instances(setting, **more):
    return replaced(
        T1,
        more.pop("overlap", B),
        50,
        labels=setting["labels"],
        weights=setting["weights"],
        flicker=setting["flicker"],
        **more,
    )


def contract(setting):
    return {"scale": setting["scale"], "fit_intercept": setting["fit_intercept"], "switch": T1, "overlap": B}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("horizon", [None, 50])
def test_the_weighted_mean(name, setting, horizon):
    cls, make, loss, transfer = UPDATES[name]
    model = cls(combine="c", horizon=horizon, **contract(setting))
    assert follow(model, twin(make, "c", setting, loss, transfer, horizon=horizon), instances(setting)) > 30
    assert sum(model.mix) == pytest.approx(1.0)


@pytest.mark.parametrize("setting", SETTINGS[:3])
@pytest.mark.parametrize("name", ["cwfe", "fesl"])  # PAFE's two start alike: which is heavier is a matter of rounding
@pytest.mark.parametrize("horizon", [None, 50])
def test_the_heavier(name, setting, horizon):
    cls, make, loss, transfer = UPDATES[name]
    model = cls(combine="s", select="argmax", horizon=horizon, **contract(setting))
    follow(model, twin(make, "s", setting, loss, transfer, horizon=horizon), instances(setting))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", UPDATES)
def test_parts(name, part, setting):
    cls, make, loss, transfer = UPDATES[name]
    model = cls(part=part, **contract(setting))
    follow(model, twin(make, part, setting, loss, transfer and part == "new"), instances(setting))


@pytest.mark.parametrize("overlap", [1, 4, 5, 6, 30])
@pytest.mark.parametrize("setting", SETTINGS[:2])
def test_overlaps_shorter_and_longer_than_the_space_is_wide(overlap, setting):
    model = varifold.CWFE(**{**contract(setting), "overlap": overlap})
    follow(model, twin(plain.AROW, "c", setting, overlap=overlap), instances(setting, overlap=overlap), rtol=1e-7)


def test_a_ridge():
    model = varifold.CWFE(ridge=1.0, **contract(SETTINGS[0]))
    follow(model, twin(plain.AROW, "c", SETTINGS[0], ridge=1.0), instances(SETTINGS[0]))


def test_a_diagonal_covariance():
    model = varifold.CWFE(covariance="diagonal", **contract(SETTINGS[1]))
    follow(model, twin(lambda: plain.AROW(full=False), "c", SETTINGS[1]), instances(SETTINGS[1]))


def test_no_overlap_leaves_the_new_model():
    setting = SETTINGS[1]
    model = varifold.CWFE(**{**contract(setting), "overlap": 0})
    follow(model, twin(plain.AROW, "c", setting, overlap=0), instances(setting, overlap=0))
    assert model.mix is None
