"""Rows whose features stay text: split as the full parser reads them, and applied as dicts are."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest

from tests._engine.json_lines import damaged, line, spelled
from varifold import AROW, OLVF, AROWRegressor, PerKey
from varifold.checks.material import state as digest
from varifold.serve.core import bodies, learners
from varifold.serve.core._rows import NameReader, may_be_refused, split_row
from varifold.serve.core.errors import RequestError
from varifold.serve.core.journal import ROWS, Record
from varifold.serve.core.state import Limits, ModelState

FIELDS = {
    "y": ["1", '"up"', "true", "2.5", "null", "[1]", "-0", '"gr\\u00fcn"', "12345678901234567890123", "1e400"],
    "w": ["1", "0.5", "-1", '"1"', "0", "1e300"],
    "id": ["7", '"a"', '""', "1.5", "null", '"' + "x" * 201 + '"'],
    "key": ['"pump"', "3", "null", "[]"],
    "keep": ["true", "false", "1"],
    "predict": ["true", "false", '"yes"'],
    "q": ["1"],
}


def row(rng: random.Random, damage: float = 0.1) -> bytes:
    """A row with features, most often with a label, and now and then with other fields or damaged."""
    features = line(rng).decode("utf-8", "replace")
    parts = [f'"x": {features}'] if rng.random() < 0.95 else []
    if rng.random() < 0.7:
        parts.append(f'"y": {rng.choice(FIELDS["y"][:4])}')
    for name, values in FIELDS.items():
        if rng.random() < 0.05:
            parts.append(f"{spelled(rng, name)}: {rng.choice(values)}")
    rng.shuffle(parts)
    data = ("{" + ", ".join(parts) + "}").encode("utf-8", "surrogatepass")
    return damaged(rng, data) if rng.random() < damage else data


def parsed(data: bytes) -> Any:
    """What the full parser and the checks make of a row, or the refusal."""
    try:
        body = bodies.parse(data)
        bodies.check_row(body)
    except RequestError as error:
        return error.status, str(error)
    return body


def test_what_is_split_is_what_the_parser_reads() -> None:
    rng = random.Random(1)
    split = 0
    for _ in range(6_000):
        data = row(rng)
        expected = parsed(data)
        try:
            found: Any = bodies.read_row(data)
        except RequestError as error:
            found = error.status, str(error)
        if isinstance(found, dict) and isinstance(found.get("x"), bytes):
            split += 1
            found = {**found, "x": orjson.loads(found["x"])}
        assert repr(_ordered(found)) == repr(_ordered(expected)), data
    assert split > 1_000


def _ordered(found: Any) -> Any:
    return sorted(found.items()) if isinstance(found, dict) else found


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b'{"x": {}', b'{"x": {}} {}', b'{"x": {"a": 1,}}', b'{"x": {"a": 1}, "x": {}}',
        b'{"x": {"a" 1}}', b'{"x": {"a": NaN}}', b'{"x": {"a": 1e999}}', b'{"x": {"a": [1]}}', b'{"x": {"a": 01}}',
        b'{"x": {"\\u0061": 1}}', b'{"x": {"\xff": 1}}', b'{"x": {"a": "\x01"}}', b'{"x": [1]}',
        b'{"x": {"a": 1}, "y": null}', b'{"z": 1}', b'{"x": {"a": 1}, "y": "\xff"}',
        b'{"x": {"a": tru}}', b"\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_what_only_the_full_parser_can_judge_is_left_to_it(data: bytes) -> None:
    assert split_row(data) is None


def test_a_row_is_split_into_text_and_values() -> None:
    data = ' {"x" : {"größe": -1.5e3, "a": null}, "y": "auf", "id": 7, "w": 0.5, "keep": false}\r'.encode()
    assert split_row(data) == {
        "x": '{"größe": -1.5e3, "a": null}'.encode(),
        "y": "auf",
        "id": 7,
        "w": 0.5,
        "keep": False,
    }


def states(learner: Any) -> tuple[ModelState, ModelState]:
    return tuple(ModelState("m", made, Limits(), "abc123") for made in (learner(), learner()))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("learner", "least"), [(AROW, 500), (lambda: OLVF(max_features=9), 500), (lambda: PerKey(AROW(), key="pump"), 20)]
)
def test_text_and_dicts_leave_the_same_state_and_answers(learner: Any, least: int) -> None:
    rng = random.Random(2)
    texts, dicts = states(learner)
    for _ in range(60):
        rows = [data for data in (row(rng) for _ in range(40)) if isinstance(parsed(data), dict)]
        found = texts.apply(ROWS, [bodies.read_row(data) for data in rows])
        assert found == dicts.apply(ROWS, [parsed(data) for data in rows])
    assert texts.learner.to_bytes() == dicts.learner.to_bytes()
    assert texts.monitor.dump() == dicts.monitor.dump()
    assert texts.learned == dicts.learned > least
    assert len(texts.waiting) == len(dicts.waiting)


def test_a_replay_of_the_rows_ends_in_the_same_state() -> None:
    rng = random.Random(3)
    live, again = states(AROW)
    for _ in range(40):
        rows = [data for data in (row(rng) for _ in range(30)) if isinstance(parsed(data), dict)]
        changes = [data for data in rows if bodies.changes(parsed(data))]
        live.apply(ROWS, [bodies.read_row(data) for data in changes])
        again.replay(Record(ROWS, b"\n".join(data.replace(b"\n", b" ") for data in changes), len(changes)))
    assert live.dump() == again.dump()
    assert digest(live.learner) == digest(again.learner)


def test_a_kept_instance_is_learned_as_its_text_says() -> None:
    kept, plain = states(AROW)
    for i in range(30):
        x = {"a": i * 0.1, "b": "red" if i % 3 else "blue"}
        text = json.dumps(x).encode()
        kept.apply(ROWS, [bodies.read_row(b'{"x": %b, "keep": true, "id": %d}' % (text, i))])
        kept.apply(ROWS, [bodies.read_row(b'{"id": %d, "y": %d}' % (i, i % 2))])
        plain.learner.learn_one(x, i % 2)
    assert digest(kept.learner) == digest(plain.learner)


def test_names_are_read_from_the_text() -> None:
    reader, rng = NameReader(), random.Random(4)
    for _ in range(3_000):
        body = split_row(row(rng, damage=0.0))
        if body is None or "x" not in body:
            continue
        names = reader.names(body["x"])
        assert names is not None
        pairs = json.loads(body["x"], object_pairs_hook=list)
        assert list(names) == [name for name, value in pairs if value is not None]
    assert reader.names(b"[1]") is None
    assert reader.names(b'{"\xff": 1}') is None
    assert reader.names(b'{"a": 1') is None


def test_more_names_than_are_held() -> None:
    reader = NameReader()
    for i in range(10_000):
        assert reader.names(b'{"n%d": 1, "m": null, "always": 2}' % i) == (f"n{i}", "always")


def test_a_regressor_is_served_as_a_classifier_is() -> None:
    state = ModelState("m", learners.make("arowregressor", {}), Limits())
    plain = AROWRegressor()
    for i in range(200):
        x = {"a": (i % 7) / 7, "b": (i % 5) / 5}
        y = 3.0 * x["a"] - x["b"]
        data = orjson.dumps({"x": x, "y": y, "predict": True})
        (answer,) = state.apply(ROWS, [bodies.read_row(data)])
        assert answer == {"label": plain.predict_one(x), "seq": i + 1}
        plain.learn_one(x, y)
    assert digest(state.learner) == digest(plain)
    assert state.monitor.error.recent < 0.1
    (refused,) = state.apply(ROWS, [bodies.read_row(b'{"x": {"a": 1}, "y": "up"}')])
    assert refused["status"] == 422
    kept = state.apply(ROWS, [bodies.read_row(b'{"x": {"a": 0.5}, "keep": true}')])[0]
    assert "seq" in state.apply(ROWS, [{"id": kept["id"], "y": 1.5}])[0]


@pytest.mark.parametrize(
    ("x", "refusable"),
    [
        (b'{"a": 1, "b":2.5e3, "c" :true, "d": null}', False),
        (b"{}", False),
        (b'{"a": "b"}', True),
        (b'{"a":"b"}', True),
        (b'{"a":\t \n"b"}', True),
        (b'{"a": 1, "b" : "x:y"}', True),
        (b'{"a=b": 1}', True),
        (b'{"a:": 1}', True),  # a needless yes: the colon ends the name
        (b'{"a:b": 1}', False),
    ],
)
def test_only_words_and_names_with_an_equals_sign_can_be_refused(x: bytes, refusable: bool) -> None:
    found = split_row(b'{"x": ' + x + b', "y": 1}')
    assert found is not None
    assert may_be_refused(found["x"]) is refusable
