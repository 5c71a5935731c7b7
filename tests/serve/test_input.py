"""One set of input rules for every way in: HTTP, batch, web socket and follow."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from websockets.sync.client import connect

from tests.serve.following import outputs, stored
from tests.serve.server import Server
from varifold import AROW, PerKey
from varifold.cli import main
from varifold.serve.core import learners
from varifold.serve.core.bodies import check_identifier
from varifold.serve.core.errors import RejectedError
from varifold.serve.core.input import InputRules
from varifold.serve.core.state import Limits
from varifold.serve.follow import Follower

RULES = {"target": "state", "id": "n", "time": "ts", "ignore": ["tags"], "dates": {"made": ["year"]}}
ROWS = [
    {
        **{"n": i, "ts": f"2026-03-04T12:{i:02}:00", "made": f"20{10 + i % 3}-01-01", "tags": [1, 2]},
        **{
            "site": {"room": {"heat": i % 5}},
            "valve": "open" if i % 2 else "NA",
            "state": "up" if i % 5 > 2 else "down",
        },
    }
    for i in range(30)
]


def test_every_way_in_leads_to_the_same_state(shared: Server, client: httpx.Client, tmp_path: Path) -> None:
    names = ["by-learn", "by-batch", "by-socket"]
    for name in names:
        assert client.put(f"/models/{name}", json={"method": "arow", "input": RULES}).status_code == 201
    for row in ROWS:
        assert client.post("/models/by-learn/learn", json={"x": row}).status_code == 200
    text = client.post("/models/by-batch/batch", content=b"\n".join(orjson.dumps({"x": row}) for row in ROWS)).text
    assert "error" not in text
    with connect(f"{shared.url.replace('http', 'ws')}/models/by-socket/stream") as stream:
        for row in ROWS:
            stream.send(orjson.dumps({"x": row}).decode())
            assert "error" not in orjson.loads(stream.recv())
    follower = Follower.open(None, "m", AROW(), InputRules.from_json(RULES), Limits())
    assert not [one for one in outputs(follower, *map(orjson.dumps, ROWS)) if "error" in one]
    expected = {"site.room.heat", "made:year", "valve=open"}
    assert set(follower.state.learner.features) == expected
    follower.state.learner.reading = {}
    digests = {client.get(f"/models/{name}/digest").json()["digest"] for name in names}
    assert digests == {learners.digest(follower.state.learner)}
    assert client.get("/models/by-learn").json()["input"] == RULES
    found = client.post("/models/by-learn/predict", json={"x": {"site": {"room": {"heat": 4}}, "tags": [3]}}).json()
    assert found["label"] == "up"
    explained = client.post("/models/by-learn/explain", json={"x": {"site": {"room": {"heat": 4}}, "tags": [3]}}).json()
    assert set(explained["contributions"]) >= {"site.room.heat"}
    for name in names:
        client.delete(f"/models/{name}")


def test_the_rules_survive_a_crash(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow", "input": RULES})
        kept = client.post("/models/m/predict", json={"x": {"n": "later", "site": {"heat": 1}}, "keep": True}).json()
        assert kept["id"] == "later"
        client.post("/models/m/learn", json={"x": ROWS[0]})
        digest = client.get("/models/m/digest").json()
    server.kill()
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json()["input"] == RULES
        assert client.get("/models/m/digest").json() == digest
        assert client.post("/models/m/labels", json={"id": "later", "y": "up"}).status_code == 200
        assert client.post("/models/m/learn", json={"x": ROWS[1]}).status_code == 200


def test_a_date_is_never_a_category_by_chance(client: httpx.Client, model: str) -> None:
    for i in range(3):
        found = client.post(f"/models/{model}/learn", json={"x": {"ts": f"2026-03-04T10:0{i}:00Z", "a": 1}, "y": "up"})
        assert found.status_code == 422
        assert "column 'ts' holds dates such as '2026-03-04T10" in found.json()["error"]
        assert '"dates": {"ts": ["hour", "weekday"]} (--dates ts=hour+weekday)' in found.json()["error"]
        assert found.json()["error"].endswith('options of the model\'s input: PUT /models/NAME with {"input": {...}}')
    assert client.get(f"/models/{model}").json()["steps"] == 0


def test_a_row_that_is_nested_deep_does_not_end_a_batch(client: httpx.Client, model: str) -> None:
    deep = '{"a": ' * 950 + "1" + "}" * 950
    rows = ['{"x": {"a": 1}, "y": "up"}', f'{{"x": {{"a": 1}}, "y": {deep}}}', '{"x": {"a": 2}, "y": "up"}']
    found = client.post(f"/models/{model}/batch", content="\n".join(rows)).text.splitlines()
    assert [set(orjson.loads(line)) for line in found] == [{"seq"}, {"error", "status"}, {"seq"}]
    for route in ("learn", "predict", "explain"):
        refused = client.post(f"/models/{model}/{route}", content=f'{{"x": {{"a": 1}}, "w": {deep}}}')
        assert refused.status_code == 400
        assert "nested too deep" in refused.text


def test_a_date_beyond_the_calendar_is_rejected(client: httpx.Client) -> None:
    rules = {"time": "ts", "dates": {"made": ["age"]}}
    assert client.put("/models/dated", json={"method": "arow", "input": rules}).status_code == 201
    x = {"made": "9999-12-31T23:59:59Z", "ts": "0001-01-01T00:00:00+14:00"}
    found = client.post("/models/dated/learn", json={"x": x, "y": "up"})
    assert found.status_code == 422
    assert "column 'made'" in found.json()["error"]
    client.delete("/models/dated")


def test_the_rules_of_a_model_can_be_replaced_and_survive_a_kill(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    row = {"x": {"a": 1.0, "ts": "2026-03-04T12:00:00", "day": "2026-03-04"}, "y": "up"}
    with server.client() as client:
        client.put("/models/m", json={"method": "arow", "key": "pump", "ask": {"budget": 0.1}})
        row["key"] = "p1"
        assert client.post("/models/m/learn", json=row).status_code == 422
        rules = {"time": "ts", "dates": {"day": ["weekday"]}}
        found = client.put("/models/m", json={"input": rules})
        assert found.status_code == 200
        assert found.json()["input"] == {**rules, "ask": client.get("/models/m").json()["ask"]}
        assert client.post("/models/m/learn", json=row).status_code == 200
        for rejected, text in [
            ({"time": 3}, "time of input is"),
            ({"key": "other"}, "the key of the model 'm' is 'pump'"),
            ({"ask": {"budget": 0.2}}, "ask of the model 'm' cannot be changed"),
        ]:
            answer = client.put("/models/m", json={"input": rejected})
            assert answer.status_code == 422
            assert text in answer.json()["error"]
        assert client.put("/models/m", json={"method": "arow", "input": rules}).status_code == 409
        expected = client.get("/models/m").json() | {"bytes": 0}
    server.kill()
    server.start()
    with server.client() as client:
        assert client.get("/models/m").json() | {"bytes": 0} == expected
        assert client.post("/models/m/learn", json=row).status_code == 200
        assert list(client.get("/models/m/features?key=p1").json()["features"]) == ["a", "day:weekday=Wed"]
        assert client.put("/models/m", json={"input": {}}).json()["input"].keys() == {"ask"}
        assert client.post("/models/m/learn", json=row).status_code == 422
    assert server.stop() == 0


def test_a_restored_file_brings_the_rules_that_it_was_trained_with(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    rows = [
        f"2026-03-{1 + i % 28:02},2025-01-{1 + i % 9:02},{i % 5},{'up' if i % 5 > 2 else 'down'}" for i in range(60)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["day,made,heat,state", *rows]) + "\n")
    options = ["--target", "state", "--time", "day", "--dates", "day=weekday", "--ignore", "made", "--model", "arow"]
    assert main(["run", str(tmp_path / "rows.csv"), *options, "--save", str(tmp_path / "m.varifold")]) == 0
    server = make_server().start()
    row = {"x": {"day": "2026-04-01", "made": "2025-01-02", "heat": 4.0}, "y": "up"}
    with server.client() as client:
        for name, rules in [("plain", {}), ("own", {"ignore": ["day", "made"]})]:
            client.put(f"/models/{name}", json={"method": "arow", "input": rules})
            restored = client.post(f"/models/{name}/restore", content=(tmp_path / "m.varifold").read_bytes()).json()
        assert restored["input"] == rules
        plain = client.get("/models/plain").json()["input"]
        roles = {"target": "state", "time": "day", "ignore": ["made"], "dates": {"day": ["weekday"]}}
        assert plain == {**roles, "types": {"heat": "numeric"}}
    server.kill()
    server.start()
    with server.client() as client:
        assert client.get("/models/plain").json()["input"] == plain
        assert client.post("/models/plain/learn", json=row).status_code == 200
        assert "day:weekday=Wed" in client.get("/models/plain/features").json()["features"]
        assert client.get("/models/plain").json()["steps"] == 61
    assert server.stop() == 0


def test_a_file_with_impossible_rules_is_rejected(client: httpx.Client, model: str) -> None:
    learner = AROW()
    learner.reading = {"dates": {"day": ["hours"]}}
    found = client.post(f"/models/{model}/restore", content=learners.to_bytes(learner))
    assert (found.status_code, client.get(f"/models/{model}").json()["seq"]) == (422, 0)
    assert "there is no part 'hours'" in found.json()["error"]


def test_the_weights_of_a_file_are_no_feature(client: httpx.Client, model: str, tmp_path: Path) -> None:
    rows = [f"{i % 5},{1 + i % 3},{'up' if i % 5 > 2 else 'down'}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["heat,importance,state", *rows]) + "\n")
    options = ["--target", "state", "--weight", "importance", "--model", "arow", "--save", str(tmp_path / "m")]
    assert main(["run", str(tmp_path / "rows.csv"), *options]) == 0
    found = client.post(f"/models/{model}/restore", content=(tmp_path / "m").read_bytes()).json()
    assert found["input"] == {"target": "state", "ignore": ["importance"], "types": {"heat": "numeric"}}
    assert client.post(f"/models/{model}/learn", json={"x": {"heat": 4, "importance": 2, "state": "up"}}).is_success
    assert list(client.get(f"/models/{model}/features").json()["features"]) == ["heat"]


@pytest.mark.parametrize("key", [None, "pump"])
@pytest.mark.parametrize("ask", [None, {"budget": 0.05}])
def test_a_policy_and_a_key_are_no_rules_of_reading(
    client: httpx.Client, ask: dict[str, Any] | None, key: str | None
) -> None:
    """So a model that has only these takes those of a file, and keeps its own key and policy."""
    learner = AROW() if key is None else PerKey(AROW(), key=key)
    learner.reading = {"time": "ts", "dates": {"day": ["weekday"]}}
    rules = {"ask": ask, "key": key}
    description = {"method": "arow", "input": {name: value for name, value in rules.items() if value is not None}}
    assert client.put("/models/asks", json=description).status_code == 201
    before = client.get("/models/asks").json()
    found = client.post("/models/asks/restore", content=learners.to_bytes(learner)).json()
    assert found["input"] == {**before["input"], **learner.reading} | ({} if ask is None else {"ask": before["ask"]})
    assert client.get("/models/asks").json()["ask"] == before["ask"]
    row = {"x": {"day": "2026-03-04", "ts": "2026-03-04T10:00:00", "pump": 1}, "y": "up"}
    assert client.post("/models/asks/learn", json=row).status_code == 200
    client.delete("/models/asks")


@pytest.mark.parametrize(
    "rules", [{"time": "pump"}, {"id": "pump"}, {"target": "pump"}, {"ignore": ["pump"]}, {"dates": {"pump": ["hour"]}}]
)
def test_rules_that_take_the_key_away_are_rejected(rules: dict[str, Any], client: httpx.Client) -> None:
    client.put("/models/pumps", json={"method": "arow", "key": "pump"})
    learner = PerKey(AROW(), key="pump")
    learner.reading = rules
    file = learners.to_bytes(learner)
    description = {"method": "arow", "key": "pump", "input": rules}
    for found in (
        client.put("/models/pumps", json={"input": rules}),
        client.post("/models/pumps/restore", content=file),
        client.put("/models/others", json=description),
        client.put("/models/others", json={"method": "arow", "input": {"key": "pump", **rules}}),
    ):
        assert found.status_code == 422
        assert "key" in found.json()["error"]
        assert "'pump'" in found.json()["error"]
        assert next(iter(rules)) in found.json()["error"]
    assert client.get("/models/others").status_code == 404
    assert client.get("/models/pumps").json()["seq"] == 0
    assert client.post("/models/pumps/learn", json={"x": {"a": 1.0, "pump": "p1"}, "y": "up"}).status_code == 200
    client.delete("/models/pumps")


FIELDS = ("target", "id", "time", "ignore", "dates", "date_order", "types", "weight", "absent", "notations", "mixed")
VALUES = (
    None,
    5,
    True,
    "",
    "a",
    [],
    ["a"],
    [5],
    [["a"]],
    {},
    {"a": 5},
    {"a": None},
    {"a": ["hour"]},
    {"a": [["hour"]]},
)


@pytest.mark.parametrize("name", FIELDS)
def test_whatever_a_file_says_about_reading_leaves_the_model_in_use(name: str, client: httpx.Client) -> None:
    model = f"read-{name.replace('_', '-')}"
    client.put(f"/models/{model}", json={"method": "arow"})
    for value in VALUES:
        learner = AROW()
        learner.reading = {name: value}
        before = client.get(f"/models/{model}").json()
        found = client.post(f"/models/{model}/restore", content=learners.to_bytes(learner))
        assert found.status_code in (200, 422)
        if found.status_code == 422:
            assert "cannot be used: " in found.json()["error"]
            assert name in found.json()["error"]
            assert client.get(f"/models/{model}").json() == before
        client.put(f"/models/{model}", json={"input": {}})
        assert client.post(f"/models/{model}/learn", json={"x": {"b": 1.0}, "y": "up"}).status_code == 200
    client.delete(f"/models/{model}")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ignores": ["a"]}, "no field 'ignores'; did you mean ignore?"),
        ({"ignore": "a"}, "ignore of input is 'a', which is not a list of fields"),
        ({"target": 3}, "target of input is '3', which is not the name of a field"),
        ({"dates": {"a": ["hours"]}}, "there is no part 'hours'"),
        ({"types": {"a": "number"}}, "types: that of 'a' is 'number'; it is one of numeric, category, text"),
        ({"types": ["a"]}, "types of input is \"['a']\", which is not an object such as"),
        ({"notations": {"a": [";"]}}, "notations: that of 'a' is"),
        ({"notations": {"a": [",", ","]}}, "the separator of decimals"),
        ({"notations": {"a": ","}}, "notations: that of 'a' is"),
        ({"flatten": 1}, "true or false"),
        ({"id": "a", "target": "a"}, "different fields"),
        ({"date_order": "ymd"}, "date_order must be one of"),
        ([], "input is an object"),
    ],
)
def test_rules_that_cannot_be(options: Any, text: str, client: httpx.Client) -> None:
    with pytest.raises(RejectedError) as raised:
        InputRules.from_json(options)
    assert text in str(raised.value)
    assert client.put("/models/never", json={"input": options}).status_code == 422


@pytest.mark.parametrize("rules", [{"ignore": ["n"]}, {"time": "n"}, {"id": "n"}, {"target": "n"}])
def test_one_rule_alone_applies_to_instances_of_numbers(rules: dict[str, Any]) -> None:
    body, text = InputRules.from_json(rules).parse_instance(b'{"x": {"n": 7, "a": 1.5}}')
    assert body["x"] == orjson.loads(text)["x"] == {"a": 1.5}


def test_fields_of_the_body_are_stronger_than_columns() -> None:
    body = {"x": {"state": "up", "n": 1, "a": 1.5}, "y": "down", "id": 2}
    assert InputRules(target="state", id="n").apply(body)
    assert body == {"x": {"a": 1.5}, "y": "down", "id": 2}


@pytest.mark.parametrize("fits", [True, False])
def test_ids_and_keys_are_short_texts_or_numbers_of_64_bits(fits: bool) -> None:
    for value in ["i", "i" * 200, -(1 << 63), (1 << 64) - 1] if fits else ["", "i" * 201, -(1 << 63) - 1, 1 << 64]:
        with contextlib.nullcontext() if fits else pytest.raises(RejectedError, match="1 to 200 characters"):
            check_identifier("id", value)


def test_objects_are_rejected_where_they_are_not_flattened() -> None:
    rules = InputRules(flatten=False, ignore=["meta"])
    body = {"x": {"meta": {"a": [1]}, "b": 1.0}}
    assert rules.apply(body)
    assert body["x"] == {"b": 1.0}
    with pytest.raises(RejectedError, match="column 'c' holds an object"):
        rules.apply({"x": {"c": {"d": 1}}})


def followed(rows: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str, code: int = 0) -> Any:
    (tmp_path / "rows").write_bytes(b"\n".join(rows))
    with (tmp_path / "rows").open("rb") as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert (
            main(["follow", "--target", "state", "--model", "arow", "--state", str(tmp_path / "s"), *options]) == code
        )


def test_the_error_is_the_mean_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wrong on the first tenth of a long stream only: a running mean of the last thousand would be near zero."""
    rows = [{"a": i % 2, "state": ("up", "down")[(i % 2) ^ (i < 500 and i % 3 == 0)]} for i in range(5_000)]
    followed([orjson.dumps(row) for row in rows], tmp_path, monkeypatch)
    captured = capfd.readouterr()
    labels = [orjson.loads(line)["label"] for line in captured.out.splitlines()]
    wrong = sum(label != row["state"] for label, row in zip(labels[1:], rows[1:], strict=True))
    assert f"error {wrong / 4_999:.3g} over 4,999 predictions" in captured.err
    assert wrong > 100


def test_rejected_lines_are_reported_at_once_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    good = b'{"a": 1, "state": "up"}'
    followed([good, b"{", b'{"a": [1], "state": "up"}', good], tmp_path, monkeypatch)
    told = capfd.readouterr().err
    assert told.count("is rejected") == 1
    assert "line 2 is rejected" in told
    assert "2 rejected" in told
    followed([b"{", b'{"a": 1, "state": {"name": "up"}}'], tmp_path, monkeypatch, code=1)
    captured = capfd.readouterr()
    assert "the target 'state' is an object; name one of its fields, such as 'state.name'" in captured.out
    state, _ = stored(tmp_path / "s", "follow")
    assert state.learner.steps == 2
    assert state.rules.to_json() == {"target": "state"}


def test_options_that_are_repeated_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    row = {"a": 1, "b": [1], "c": [2], "d": "2026-03-04", "e": "2026-03-04", "state": "up"}
    given = ["--ignore", "b", "--ignore", "c", "--dates", "d=weekday", "--dates", "e=month"]
    followed([orjson.dumps(row)], tmp_path, monkeypatch, *given)
    state, _ = stored(tmp_path / "s", "follow")
    assert set(state.learner.features) == {"a", "d:weekday=Wed", "e:month=Mar"}


@pytest.mark.parametrize("role", ["target", "id", "key", "time"])
def test_a_role_that_is_an_object_is_rejected(role: str) -> None:
    """The name of one of its fields is the remedy: a time would otherwise become a feature."""
    rules = InputRules.from_json({role: "ts"})
    with pytest.raises(RejectedError, match=rf"the {role} 'ts' is an object; name .* such as 'ts.\$date'"):
        rules.apply({"x": {"ts": {"$date": 1_700_000_000}, "a": 1.0}})
