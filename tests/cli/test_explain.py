"""``varifold explain``: the instance in its three spellings, and what is said of it."""

import json

import pytest

import varifold.errors
from varifold import AROW, LODA, OLVF, ORF3V, AROWRegressor, AutoDetector, GaussianNB, PerKey, Vote, VoteDetector
from varifold.cli import main
from varifold.cli.output import probability


@pytest.fixture
def saved(tmp_path):
    model = ORF3V()
    for step in range(200):
        model.learn_one({"heat": step % 40, "site": "north" if step % 3 else "south"}, "up" if step % 40 > 20 else "ok")
    model.save(tmp_path / "model")
    return model, str(tmp_path / "model")


def explained(capsys, *argv):
    assert main(["explain", *argv]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("row", [['{"heat": 30, "site": "north"}'], ["heat=30", "site=north"]])
def test_json_and_pairs_say_the_same(capsys, saved, row):
    model, path = saved
    found = json.loads(explained(capsys, path, "--row", *row, "--format", "json"))
    x = {"heat": 30.0, "site": "north"}
    assert found["prediction"] == "up"
    assert found["probability"] == pytest.approx(model.predict_proba_one(x)["up"])
    assert found["labels"] == ["ok", "up"]
    assert [r["feature"] for r in found["features"]] == ["heat", "site=north", "(intercept)"]
    for i, label in enumerate(found["labels"]):
        assert sum(r["parts"][i] for r in found["features"]) == pytest.approx(model.margins_one(x)[label])
    assert found["unknown"] == []


def test_the_table_names_what_it_does_not_know(capsys, saved):
    out = explained(capsys, saved[1], "--row", "heat=30", "colour=red", "--top", "1", "--label", "up")
    assert "prediction   up" in out
    assert "not known    colour" in out
    assert out.splitlines()[-1].startswith("score")


def test_a_linear_model_is_explained_too(capsys, tmp_path):
    model = OLVF()
    for step in range(50):
        model.learn_one({"a": step % 2, "b": 1.0}, step % 2)
    model.save(tmp_path / "m")
    found = json.loads(explained(capsys, str(tmp_path / "m"), "--row", "a=1", "--format", "json"))
    assert sum(r["parts"][1] for r in found["features"]) == pytest.approx(model.margins_one({"a": 1.0})[1])


def test_a_row_of_a_file(capsys, saved, tmp_path):
    pytest.importorskip("varifold.streams.stream", reason="files are not read by this version")
    (tmp_path / "rows.csv").write_text("heat,site,label\n3,south,ok\n30,north,up\n")
    argv = ["--row", "2", "--data", str(tmp_path / "rows.csv"), "--target", "label", "--format", "json"]
    assert json.loads(explained(capsys, saved[1], *argv))["prediction"] == "up"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--row", "7"], "--data"),
        (["--row", "heat"], "name=value"),
        (["--row", "{heat"], "JSON"),
        (["--row", "heat=1", "--data", "german"], "number of a row"),
        (["--row", "heat=1", "--label", "down"], "it knows ok, up"),
    ],
)
def test_wrong_rows_are_rejected(capsys, saved, argv, message):
    assert main(["explain", saved[1], *argv]) == 2
    assert message in capsys.readouterr().err


def test_a_model_without_labels_explains_nothing(capsys, tmp_path):
    ORF3V().save(tmp_path / "m")
    assert main(["explain", str(tmp_path / "m"), "--row", "a=1"]) == 1
    assert "not learned anything" in capsys.readouterr().err


def test_a_name_that_is_a_number_to_the_model_is_one_in_a_row(capsys, tmp_path):
    model = OLVF()
    for step in range(40):
        model.learn_one({3: step % 2, "4": 1.0}, step % 2)
    model.save(tmp_path / "model")
    for row in (["3=1", "4=1"], ['{"3": 1, "4": 1}']):
        found = json.loads(explained(capsys, str(tmp_path / "model"), "--row", *row, "--format", "json"))
        assert {r["feature"] for r in found["features"]} >= {3, "4"}
        assert found["unknown"] == []
        assert found["probability"] == pytest.approx(model.predict_proba_one({3: 1, "4": 1})[1])
    assert main(["explain", str(tmp_path / "model"), "--row", "3=1", "3=2"]) == 2
    assert "'3' is given twice" in capsys.readouterr().err


def test_a_feature_is_drawn(capsys, saved, tmp_path):
    pytest.importorskip("matplotlib")
    for extra in ([], ["--feature", "heat"]):
        picture = tmp_path / f"{len(extra)}.png"
        out = explained(capsys, saved[1], "--row", "heat=30", "site=north", "--plot", str(picture), *extra)
        assert f"picture of heat written to {picture}" in out
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_reported(capsys, saved, tmp_path):
    model = OLVF()
    model.learn_one({"a": 1.0}, 0)
    model.save(tmp_path / "m")
    for file, row, extra, words in (
        (str(tmp_path / "m"), "a=1", ["--feature", "a"], "is of olvf"),
        (saved[1], "site=north", [], "name one with --feature"),
        (saved[1], "heat=30", ["--feature", "hat"], "there is no digest for the feature 'hat'"),
    ):
        assert main(["explain", file, "--row", row, "--plot", str(tmp_path / "x.png"), *extra]) != 0
        assert words in capsys.readouterr().err


def test_a_numbered_row_is_read_as_the_model_remembers(tmp_path, capsys):
    file, model = tmp_path / "rows.csv", tmp_path / "m.model"
    file.write_text("when,a,y\n" + "".join(f"2026-01-{1 + i % 28:02},{i % 7},{'xy'[i % 7 > 3]}\n" for i in range(60)))
    run = ["run", str(file), "--target", "y", "--time", "when", "--model", "arow", "--save", str(model)]
    assert main(run) == 0
    capsys.readouterr()
    assert main(["explain", str(model), "--row", "3", "--data", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["feature"] for row in found["features"]] == ["a", "(intercept)"]


@pytest.fixture
def keyed(tmp_path):
    model = PerKey(OLVF(), key="device")
    for step in range(60):
        for device in ("a", "b", 7)[: 2 + step % 2]:
            up = (step % 4 > 1) == (device == "a")
            model.learn_one({"device": device, "heat": float(step % 4), f"only_{device}": 1.0}, "up" if up else "ok")
    model.save(tmp_path / "model")
    return model, str(tmp_path / "model")


@pytest.mark.parametrize(
    "given",
    [["--row", "heat=3", "--key-value", "b"], ["--row", "heat=3", "device=b"], ["--row", '{"heat": 3, "device": "b"}']],
)
def test_one_learner_per_key_is_explained_by_that_of_the_key(capsys, keyed, given):
    model, path = keyed
    found = json.loads(explained(capsys, path, *given, "--format", "json"))
    learner = model.learner("b")
    assert found["prediction"] == learner.predict_one({"heat": 3.0}) == "ok"
    assert found["scores"] == [learner.margins_one({"heat": 3.0})[y] for y in found["labels"]]
    assert found["unknown"] == []


def test_a_key_that_is_a_number_is_found(capsys, keyed):
    assert "prediction" in explained(capsys, keyed[1], "--row", "heat=3", "device=7")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--row", "heat=3"],
            "one learner per 'device'; name one with --key-value, or put 'device' in the row. Known: a, b, 7",
        ),
        (["--row", "heat=3", "device=c"], "no learner for 'device' = 'c'"),
        (["--row", "heat=3", "--key-value", "zz"], "no learner for 'device' = 'zz'"),
    ],
)
def test_a_key_is_needed_and_known(capsys, keyed, given, message):
    assert main(["explain", keyed[1], *given]) == 2
    assert message in capsys.readouterr().err


def test_a_key_is_rejected_where_there_is_one_learner(capsys, saved):
    for command in (["explain", saved[1], "--row", "heat=3"], ["inspect", saved[1]]):
        assert main([*command, "--key-value", "a"]) == 2
        assert "has a single learner" in capsys.readouterr().err


def test_inspect_lists_keys_and_opens_one(capsys, keyed):
    model, path = keyed
    assert main(["inspect", path, "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in ("perkey", "of          olvf", "keys        3", "and 1 that learned less"))
    assert main(["inspect", path, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["keys"][-1] == {"key": 7, "steps": model.learner(7).steps, "features": 2}
    assert [row["key"] for row in found["keys"]] == ["a", "b", 7]
    assert main(["inspect", path, "--key-value", "7", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in found["features"]} == {"heat", "only_7"}
    assert main(["inspect", path, "--plot", "x.png"]) == 2
    assert "--key-value" in capsys.readouterr().err


def test_a_vote_is_not_opened(capsys, tmp_path):
    vote = Vote([OLVF(), OLVF()])
    vote.learn_one({"a": 1.0}, "up")
    vote.save(tmp_path / "vote")
    for command in (["inspect"], ["explain", "--row", "a=1"]):
        assert main([command[0], str(tmp_path / "vote"), *command[1:]]) == 2
        assert "a vote of 2 learners" in capsys.readouterr().err


@pytest.mark.parametrize("model", [AROW(), AROWRegressor()])
def test_a_value_that_is_new_is_no_name_that_is_new(capsys, tmp_path, model):
    for step in range(40):
        model.learn_one({"icd": "AB"[step % 2], "größe": step % 7, "": 1.0}, step % 2)
    path = str(tmp_path / "m")
    model.save(path)
    out = explained(
        capsys, path, "--row", json.dumps({"icd": "new code", "größe": "abc", "blood": "A", "": 1, "q": None})
    )
    assert "not known    blood\n" in out
    assert "not seen     icd = new code, größe = abc (value not seen before, adds nothing)" in out
    assert [line for line in out.splitlines() if line.startswith('""')]
    found = json.loads(explained(capsys, path, "--row", "icd=new code", "größe=abc", "blood=A", "--format", "json"))
    assert (found["unknown"], found["unseen"]) == (["blood"], ["icd", "größe"])
    found = json.loads(explained(capsys, path, "--row", "icd=A", "größe=3", "--format", "json"))
    assert (found["unknown"], found["unseen"]) == ([], [])
    found = json.loads(explained(capsys, path, "--row", "icd=3", "größe=3", "--format", "json"))
    assert (found["unknown"], found["unseen"]) == ([], ["icd"])
    assert main(["inspect", path]) == 0
    assert any(line.startswith('""  ') for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.9988, 2, "> 0.99"),
        (1.0, 2, "1.00"),
        (0.994, 2, "0.99"),
        (0.0, 4, "0.0000"),
        (1e-9, 4, "< 0.0001"),
        (0.5, 2, "0.50"),
    ],
)
def test_no_probability_is_rounded_to_certainty(value, digits, text):
    assert probability(value, digits) == text


def test_a_sure_prediction_is_not_shown_as_certain(capsys, tmp_path, monkeypatch):
    model = GaussianNB()
    for step in range(400):
        model.learn_one({"a": step % 2 + 0.1 * (step % 5)}, step % 2)
    share = model.predict_proba_one({"a": 1.5})[1]
    assert 0.99995 < share < 1.0
    model.save(tmp_path / "m")
    titles = []
    monkeypatch.setattr("varifold.report.explanation.plot_explanation", lambda *given, label: titles.append(given[3]))
    out = explained(capsys, str(tmp_path / "m"), "--row", "a=1.5", "--plot", str(tmp_path / "why.png"))
    assert "probability  > 0.9999\n" in out
    assert titles == ["gaussiannb predicts 1 (probability > 0.99)"]


def test_a_row_is_written_as_in_the_files(capsys, tmp_path):
    path, model = tmp_path / "mai.csv", str(tmp_path / "m")
    lines = [f"{d:02d}.05.2025;{1200 + d * 97:,};{d},5;{d % 3},2;a{d % 2}".replace(",", ".", 1) for d in range(1, 31)]
    path.write_text("Tag;Umsatz;Preis;Menge;Ort\n" + "\n".join(lines) + "\n")
    options = ["--dates", "Tag=weekday", "--decimal", ",", "--types", "Ort=category", "--target-type", "number"]
    with pytest.warns(varifold.errors.VarifoldWarning, match="1.297 is 1297"):
        assert main(["run", str(path), "--target", "Menge", "--model", "arowregressor", "--save", model, *options]) == 0
    capsys.readouterr()
    numbered = explained(capsys, model, "--row", "3", "--data", str(path), "--decimal", ",")
    assert "Tag:weekday=Sat" in numbered
    assert "1491" in numbered
    for row in (
        ["Tag=03.05.2025", "Umsatz=1.491", "Preis=3,5", "Ort=a1"],
        ['{"Tag": "03.05.2025", "Umsatz": "1.491", "Preis": 3.5, "Ort": "a1"}'],
    ):
        assert explained(capsys, model, "--row", *row) == numbered


def test_a_number_that_can_be_read_in_two_ways_is_an_error(capsys, saved):
    assert main(["explain", saved[1], "--row", "heat=1,234"]) == 1
    assert "column 'heat' can be read in two ways: 1,234 is 1.234 or 1,234" in capsys.readouterr().err


@pytest.fixture
def detector(tmp_path):
    model = AutoDetector()
    for step in range(300):
        model.learn_one({"heat": step * 37 % 100, "site": "north" if step % 3 else "south"})
    model.save(tmp_path / "detector")
    return model, str(tmp_path / "detector")


def test_the_score_of_a_detector_is_explained(capsys, detector):
    model, path = detector
    found = json.loads(explained(capsys, path, "--row", "heat=900", "site=north", "--format", "json"))
    x = {"heat": 900.0, "site": "north"}
    score, p_value = model.score_and_p_value_one(x)
    assert found["scores"] == [pytest.approx(score)]
    assert (found["p_value"], found["anomaly"]) == (pytest.approx(p_value), True)
    assert found["features"][0]["feature"] == "heat"
    assert sum(row["parts"][0] for row in found["features"]) == pytest.approx(score)
    shown = explained(capsys, path, "--row", "heat=900", "site=west")
    p_value = model.p_value_one({"heat": 900.0, "site": "west"})
    assert f"p-value      {p_value:.4g}, an anomaly\n" in shown
    assert "site = west (value not seen before)" in shown


def test_the_explanation_of_a_detector_is_drawn(capsys, detector, tmp_path):
    pytest.importorskip("matplotlib")
    explained(capsys, detector[1], "--row", "heat=900", "--plot", str(tmp_path / "why.png"))
    assert (tmp_path / "why.png").stat().st_size > 1000


def test_what_a_detector_does_not_have_is_reported(capsys, detector, tmp_path):
    assert main(["explain", detector[1], "--row", "heat=9", "--label", "up"]) != 0
    assert "holds a detector, which has no labels" in capsys.readouterr().err
    assert main(["predict", detector[1], __file__]) != 0
    assert "holds a detector: use `varifold detect --load" in capsys.readouterr().err
    vote = VoteDetector([LODA()])
    vote.learn_one({"heat": 1.0})
    vote.save(tmp_path / "vote")
    assert main(["explain", str(tmp_path / "vote"), "--row", "heat=9"]) != 0
    assert "holds a vote of 1 learners" in capsys.readouterr().err
