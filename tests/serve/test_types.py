"""Types of fields: texts that are split into words, and strings that are numbers."""

from __future__ import annotations

import asyncio
import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from websockets.sync.client import connect

import varifold
from tests.serve.following import outputs, stored
from tests.serve.server import Server
from varifold import AROW, PerKey, streams
from varifold.cli import main
from varifold.errors import ParameterError
from varifold.serve.core import learners, log
from varifold.serve.core.errors import RejectedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.models import Models, Policy
from varifold.serve.core.quoted_numbers import QuotedNumbers
from varifold.serve.core.state import Limits
from varifold.serve.follow import Follower

GOOD, BAD = ["fast", "box", "good", "cheap", "nice"], ["late", "slow", "bad", "rude", "box"]


def comments(n: int) -> Iterator[tuple[str, str, str, str]]:
    """Age, city, comment and label of instances; the comments are all different."""
    for i in range(n):
        words = BAD if i % 3 == 0 else GOOD
        text = " ".join([*(words[(i + k) % 5] for k in range(4)), f"Order{i}"])
        yield str(20 + i % 50), "Ulm" if i % 2 else "Kiel", text, "complaint" if i % 3 == 0 else "fine"


@pytest.fixture
def file_of_texts(tmp_path: Path) -> Path:
    with (tmp_path / "text.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("age", "city", "comment", "y"), *comments(300)])
    options = ["--target", "y", "--model", "arow", "--save", str(tmp_path / "text.model")]
    assert main(["run", str(tmp_path / "text.csv"), *options]) == 0
    return tmp_path / "text.model"


def test_the_texts_of_a_file_are_words_on_the_server_as_in_predict(
    shared: Server, client: httpx.Client, file_of_texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = client.post("/models/texts/restore", content=file_of_texts.read_bytes())
    assert made.status_code == 201
    assert made.json()["input"]["types"] == {"age": "numeric", "city": "category", "comment": "text"}
    x = {"age": 40, "city": "Ulm", "comment": "bad late FAST slow, bad late slow box"}
    rows = file_of_texts.with_name("one.csv")
    rows.write_text('age,city,comment\n40,Ulm,"bad late FAST slow, bad late slow box"\n')
    capsys.readouterr()
    assert main(["predict", str(file_of_texts), str(rows)]) == 0
    (expected,) = csv.DictReader(capsys.readouterr().out.splitlines())
    found = client.post("/models/texts/predict", json={"x": x}).json()
    assert found["label"] == "complaint"
    row = client.post("/models/texts/batch", json={"x": x}).json()
    with connect(f"{shared.url.replace('http', 'ws')}/models/texts/stream") as stream:
        stream.send(orjson.dumps({"x": x}).decode())
        message = orjson.loads(stream.recv())
    assert found["probabilities"] == row["probabilities"] == message["probabilities"]
    columns = [name for name in expected if name.endswith("complaint")]
    assert [float(expected[name]) for name in columns] == [pytest.approx(found["probabilities"]["complaint"], abs=1e-6)]
    contributions = client.post("/models/texts/explain", json={"x": x}).json()["contributions"]
    assert contributions.keys() >= {"comment:bad", "comment:late", "comment:fast"}
    client.delete("/models/texts")


def test_a_loaded_model_takes_the_words_of_the_documented_line(file_of_texts: Path) -> None:
    """See docs/files.md."""
    model = varifold.load(file_of_texts)
    rows = [{"age": 40, "city": "Ulm", "comment": "bad late FAST slow, bad late slow box"}]
    words = [x for block in streams.read(rows, types={"comment": "text"}).blocks() for x in block.rows()]
    assert model.predict_many(words) == ["complaint"]


def test_every_way_in_makes_the_same_words(client: httpx.Client) -> None:
    types = {"comment": "text", "age": "numeric"}
    rules = {"target": "y", "types": types}
    assert client.put("/models/words", json={"method": "arow", "input": rules}).status_code == 201
    follower = Follower.open(None, "m", AROW(), InputRules.from_json(rules), Limits())
    expected = AROW()
    for age, city, comment, y in comments(50):
        row = {"age": age, "city": city, "comment": comment, "y": y}
        assert client.post("/models/words/learn", json={"x": row}).status_code == 200
        assert "error" not in outputs(follower, orjson.dumps(row))[0]
        words = {f"comment:{word.lower()}": float(comment.split().count(word)) for word in comment.split()}
        expected.learn_one({"age": float(age), "city": city} | words, y)
    assert {client.get("/models/words/digest").json()["digest"], learners.digest(follower.state.learner)} == {
        learners.digest(expected)
    }
    # words come and go: they are watched as one field, and no alert reports one of them
    assert client.get("/models/words/features").json()["presence"].keys() == {"age", "city", "comment"}
    client.delete("/models/words")


def test_a_key_among_the_words_of_a_text_stops_nothing(client: httpx.Client) -> None:
    description = {"method": "arow", "key": "note:a", "input": {"types": {"note": "text"}}}
    assert client.put("/models/odd", json=description).status_code == 201
    for more in ({}, {"key": "k"}):  # the first has a word for its key
        found = client.post("/models/odd/learn", json={"x": {"note": "a b", "v": 1}, "y": "up", **more})
        assert found.status_code == 200
    client.delete("/models/odd")


def test_the_numbers_of_a_file_are_read_as_in_the_file(client: httpx.Client, tmp_path: Path) -> None:
    rows = [f"{i % 40},5;{1 + i % 7}.000,{i % 10};{'n.a.' if i % 50 == 49 else i % 8};{i % 3},25" for i in range(200)]
    (tmp_path / "rows.csv").write_text("\n".join(["heat;turnover;mixed;price", *rows]) + "\n")
    options = ["--target", "price", "--target-type", "number", "--thousands", ".", "--types", "mixed=numeric"]
    command = ["run", str(tmp_path / "rows.csv"), *options, "--model", "arow", "--save", str(tmp_path / "m")]
    assert main(command) == 0
    found = client.post("/models/numbers/restore", content=(tmp_path / "m").read_bytes()).json()
    assert found["input"]["types"] == {"heat": "numeric", "turnover": "numeric"}
    assert found["input"]["notations"] == {name: [",", "."] for name in ("heat", "price", "turnover")}
    assert client.put("/models/numbers", json={"input": found["input"]}).json()["input"] == found["input"]
    texts = {"heat": "12,5", "turnover": "3.000,2", "mixed": "n.a."}
    predicted = [
        client.post("/models/numbers/predict", json={"x": x}).json()["label"]
        for x in (texts, {"heat": 12.5, "turnover": 3000.2, "mixed": "n.a."})
    ]
    assert predicted[0] == predicted[1]
    assert client.post("/models/numbers/learn", json={"x": {**texts, "price": "1,25"}}).status_code == 200
    before = client.get("/models/numbers").json()
    rejected = client.post("/models/numbers/learn", json={"x": {"heat": "hot", "price": 1}})
    assert rejected.status_code == 422
    assert "column 'heat' is 'hot', which is no number" in rejected.json()["error"]
    assert "send null" in rejected.json()["error"]
    assert client.get("/models/numbers").json() == before
    client.delete("/models/numbers")


@pytest.mark.parametrize(
    ("text", "number"), [("1.5", 1.5), (" -2 ", -2.0), ("1e3", 1000.0), ("NA", None), ("", None), ("nAn", None)]
)
def test_strings_that_are_numbers(text: str, number: float | None) -> None:
    assert InputRules(types={"v": "numeric"}).features({"v": text}) == {"v": number}


@pytest.mark.parametrize("text", ["1,5", "1.5 kg", "inf", "1e999", "high", "2026-03-04"])
def test_strings_that_are_no_numbers(text: str) -> None:
    with pytest.raises(RejectedError, match=r"column 'v' is '.*', which is no number, and its type is numeric"):
        InputRules(types={"v": "numeric"}).apply({"x": {"v": text}})


def test_units_are_left_out() -> None:
    rules = InputRules.from_json({"types": {"v": "numeric"}, "notations": {"v": [",", ".", "kg"]}})
    assert rules.features({"v": "1.200,5 kg"}) == {"v": 1200.5}
    assert rules.features({"v": "7"}) == {"v": 7.0}
    with pytest.raises(RejectedError, match="column 'v': '3 lb' has another unit"):
        rules.apply({"x": {"v": "3 lb"}})


@pytest.mark.parametrize("kind", ["text", "numeric"])
def test_a_key_has_no_type(kind: str, client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ParameterError, match="the key 'pump' is also a field of types"):
        InputRules(key="pump", types={"pump": kind})
    assert main(["follow", "--target", "y", "--key", "pump", "--types", f"pump={kind}"]) == 2
    assert "the key 'pump' is also a field of types" in capsys.readouterr().err
    learner = PerKey(AROW(), key="pump")
    learner.reading = {"types": {"pump": kind, "v": kind}}  # a file has the types of all its columns
    found = client.post("/models/typed-key/restore", content=learners.to_bytes(learner)).json()
    assert found["input"] == {"types": {"v": kind}}
    client.delete("/models/typed-key")


def numbers_reported(*rows: dict[str, Any], **rules: Any) -> list[tuple[str, str, list[str]]]:
    found: list[tuple[str, str, list[str]]] = []
    read = InputRules(**rules)
    read.numbers = QuotedNumbers(lambda field, text, notation: found.append((field, text, notation.parts)))
    for row in rows:
        read.features(row)
    return found


def test_numbers_that_are_strings_are_found_once() -> None:
    rows = [{"a": f"{i}.5", "b": f"{i},25", "c": f"n{i}", "d": 1.5 * i, "k": f"{i}.5"} for i in range(60)]
    assert numbers_reported(*rows, key="k") == [("a", "0.5", ["."]), ("b", "0,25", [","])]
    assert numbers_reported(*rows[:19]) == []
    assert numbers_reported(*rows, key="k", types={"a": "category", "b": "text"}) == []
    assert numbers_reported(*({"a": f"{1 + i},234"} for i in range(20))) == [("a", "1,234", [","])]
    assert len(numbers_reported(*({f"f{j}": f"{i}.5" for j in range(1_000)} for i in range(20)))) == 400


def test_the_server_logs_once_that_numbers_are_strings(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
        for i in range(25):
            client.post("/models/m/predict", json={"x": {"v": f"{i},5"}})
        client.put("/models/m", json={"input": {"time": "ts"}})
        for i in range(25):
            client.post("/models/m/learn", json={"x": {"v": f"{i},5", "w": f"{i}.5"}, "y": "up"})
        client.put("/models/keyed", json={"method": "arow", "key": "pump"})
        for i in range(25):
            client.post("/models/keyed/learn", json={"x": {"v": i, "pump": f"{i}.5"}, "y": "up"})
        lines = [line for line in server.log().splitlines() if "numbers as strings" in line]
        assert ["'v' holds" in lines[0], "'w' holds" in lines[1], len(lines)] == [True, True, 2]
        remedy = '{"input":{"types":{"v":"numeric"},"notations":{"v":[","]}}}'
        assert f"PUT /models/m {remedy} reads the numbers" in lines[0]
        assert "with the other rules, which it replaces, reads" in lines[1]
        assert client.put("/models/m", content=remedy).status_code == 200
        assert client.post("/models/m/learn", json={"x": {"v": "7,5"}, "y": "up"}).status_code == 200
    assert server.stop() == 0


def test_rules_that_came_with_a_restore_keep_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    monkeypatch.setattr(log, "warning", lambda text, model=None: logged.append(text))

    async def run() -> None:
        models = Models(tmp_path, Policy(), Limits(), pytest.fail)
        models.open()
        learner = AROW()
        learner.reading = {"time": "ts"}
        model = await models.create("m", "arow", {})
        await model.restore(learners.to_bytes(learner))
        for i in range(25):
            model.state.rules.parse_instance(orjson.dumps({"x": {"v": f"{i}.5"}}))
        await models.stop()

    asyncio.run(run())
    assert len(logged) == 1


def test_follow_reports_once_that_numbers_are_strings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [orjson.dumps({"v": f"{i}.5", "w": f"{i},5", "state": "up"}) for i in range(60)]
    (tmp_path / "rows").write_bytes(b"\n".join(rows))

    def follow(*options: str) -> str:
        with (tmp_path / "rows").open("rb") as source:
            monkeypatch.setattr(sys, "stdin", source)
            assert main(["follow", "--target", "state", "--model", "arow", *options]) == 0
        return capfd.readouterr().err

    err = follow()
    assert err.count("'v' holds numbers as strings, such as '0.5'") == 1
    assert "a category: --types v=numeric reads the numbers, v=category suppresses" in err
    assert "a category: write them with a decimal point alone; --types w=numeric" in err
    assert "as strings" not in follow("--types", "v=numeric,w=category", "--state", str(tmp_path / "s"))
    state, _ = stored(tmp_path / "s", "follow")
    assert state.learner.reading["types"] == {"v": "numeric", "w": "category"}
    assert "v" in state.learner.features
