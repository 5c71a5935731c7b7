"""How `varifold follow` reads a line: its target, its dates, what it refuses, and what hostile lines do."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.following import ask, follow, outputs, stored
from varifold import AROW, AROWRegressor, PerKey, streams
from varifold.cli import main
from varifold.errors import DataError
from varifold.serve import follow as following
from varifold.serve.core import learners
from varifold.serve.core.input import InputRules
from varifold.serve.core.state import Limits
from varifold.serve.follow import Follower


@pytest.mark.parametrize(
    ("labels", "options", "method"),
    [
        ([21.5, 22.25, 20.0], [], "autoregressor"),
        ([float(i) + 0.5 for i in range(60)], ["--model", "arow"], "arowregressor"),
        ([3 * i for i in range(60)], [], "autoregressor"),
        ([3 * i for i in range(60)], ["--target-type", "class"], "auto"),
        ([0, 1, 0, 1], ["--target-type", "number", "--model", "arow"], "arowregressor"),
        ([0, 1, 0, 1], [], "auto"),
        ([0.5, 1.5] * 8, [], "auto"),
        ([0.5, 1, 1.5, 2, 2.5, 3], [], "autoregressor"),
        ([1, 2, 2.5] * 3, [], "autoregressor"),
        ([1, 2, 2.5] * 4, [], "auto"),
        (["up", "down"], [], "auto"),
        ([21.5, "down"], [], "auto"),
    ],
)
def test_the_first_labels_choose_classifier_or_regressor(
    labels: list[Any],
    options: list[str],
    method: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    rows = [{"size": 1.0, "id": "early"}, *({"size": i % 7, "price": y} for i, y in enumerate(labels))]
    rows.append({"id": "early", "price": labels[0]})
    (tmp_path / "lines").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    folder = str(tmp_path / "s")
    with (tmp_path / "lines").open("rb") as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert main(["follow", "--target", "price", "--id", "id", "--state", folder, *options]) == 0
    told = capfd.readouterr().err
    assert (f"the target is a number (--target-type class takes every number as a class): {method}" in told) == (
        method.endswith("regressor") and "--target-type" not in options
    )
    state, _ = stored(tmp_path / "s", "follow")
    assert state.learner._header()["method"] == method
    assert state.learner.steps == len(labels) + 1
    if not options:  # `run` decides as `follow`
        block = next(streams.read(tmp_path / "lines", target="price", format="jsonl", unlabelled="keep").blocks())
        assert (block.targets is not None) == method.endswith("regressor")


def test_a_state_keeps_the_type_of_its_target(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "s")
    first = follow("--target", "price", "--state", folder)
    ask(first, b'{"size": 2, "price": 21.5}\n')
    first.kill()
    first.communicate()
    again = follow("--target", "price", "--state", folder)
    assert ask(again, b'{"size": 2, "price": 22}\n')["label"] == 21.5
    assert "finite numbers" in ask(again, b'{"size": 2, "price": "dear"}\n')["error"]
    _, errors = again.communicate()
    assert b"is not used" not in errors
    assert main(["follow", "--target", "price", "--state", folder, "--target-type", "class"]) == 2
    assert "--target-type class: the learner is a regressor, which predicts numbers" in capfd.readouterr().err


def test_a_number_that_the_learner_cannot_predict() -> None:
    process = follow("--target", "price", "--model", "nb3")
    assert process.stdin is not None
    _, errors = process.communicate(b'{"size": 2, "price": 21.5}\n')
    assert (process.returncode, "nb3 is a classifier; use a regressor" in errors.decode()) == (2, True), errors


def test_numbers_are_followed_by_one_regressor_per_key() -> None:
    process = follow("--target", "price", "--key", "shop")
    for price in (20.0, 40.5):
        ask(process, b'{"shop": "%d", "size": 2, "price": %.1f}\n' % (price, price))
    assert ask(process, b'{"shop": "20", "size": 2, "price": 21}\n')["label"] == 20.0
    assert ask(process, b'{"shop": "40", "size": 2, "price": 41}\n')["label"] == 40.5
    _, errors = process.communicate()
    assert b"4 learned in all" in errors


DATE = b'{"when": "2026-03-04T12:30:00", "load": 1.0, "state": "up"}'


def test_dates_are_refused_unless_said_what_of_them_matters() -> None:
    def followed(**how: Any) -> tuple[dict[str, Any], Any]:
        follower = Follower.open(None, "m", AROW(), InputRules(target="state", **how), Limits())
        (found,) = outputs(follower, DATE)
        return found, follower.state.learner

    refused, learner = followed()
    assert "holds dates such as '2026-03-04T12:30:00'" in refused["error"]
    assert "--dates when=hour+weekday" in refused["error"]
    assert (refused["line"], learner.steps) == (1, 0)
    assert set(followed(dates={"when": ["hour", "weekday"]})[1].features) == {"load", "when:hour", "when:weekday=Wed"}
    assert set(followed(time="when")[1].features) == {"load"}
    assert set(followed(ignore=["when"])[1].features) == {"load"}
    assert set(followed(types={"when": "category"})[1].features) == {"load", "when=2026-03-04T12:30:00"}


def test_objects_are_ignored_at_every_level_as_run_ignores_them(tmp_path: Path) -> None:
    """A whole object, one within another, and a field of one."""
    line = b'{"a": 1, "meta": {"b": [2]}, "s": {"t": {"u": 3}, "v": {"w": 4, "z": 5}}, "state": "up"}'
    ignored = ["meta", "s.t", "s.v.w"]
    follower = Follower.open(None, "m", AROW(), InputRules(target="state", ignore=ignored), Limits())
    outputs(follower, line)
    (tmp_path / "one.jsonl").write_bytes(line + b"\n")
    stream = streams.read([tmp_path / "one.jsonl"], target="state", target_type="class", ignore=ignored)
    assert [x for block in stream.blocks() for x in block.rows()] == [{"a": 1.0, "s.v.z": 5.0}]
    assert set(follower.state.learner.features) == {"a", "s.v.z"}


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": 1.5, "nested": {"b": 2, "c": {"d": "x"}}, "state": "up"}',
        b'{"a": NaN, "b": "NA", "c": null, "d": 100000000000000000000, "state": "up"}',
        b'{"state": "up"}',
        b'{"a": 1, "state": "2"}',
        b'{"a": 1, "state": "2.5"}',
        b'{"a": 1, "state": true}',
        b"{",
        b'{"a": [1], "state": "up"}',
        b"[1]",
        b'{"a": 1e999, "state": "up"}',
        b'{"when": "2026-03-04", "state": "up"}',
    ],
)
def test_a_line_is_read_as_run_reads_it(line: bytes, tmp_path: Path) -> None:
    """The same features, or an error in the same words."""
    follower = Follower.open(None, "m", AROW(), InputRules(target="state"), Limits())
    (found,) = outputs(follower, line)
    (tmp_path / "one.jsonl").write_bytes(line + b"\n")
    plain = AROW()
    try:
        for block in streams.read([tmp_path / "one.jsonl"], target="state", target_type="class").blocks():
            plain.learn_many(block)
    except DataError as error:
        said = str(error).rpartition("one.jsonl, line 1: ")[2]
        assert found["error"].replace(" at step 1", "") == said
    else:
        assert "error" not in found
    assert learners.digest(follower.state.learner) == learners.digest(plain)


def test_a_refused_line_takes_no_number(tmp_path: Path) -> None:
    follower = Follower.open(tmp_path, "m", AROWRegressor(), InputRules(target="price"), Limits())
    outputs(follower, b'{"size": 1, "price": 2}')
    refused = outputs(follower, b'{"size": 1, "price": "dear"}', b'{"size": 1, "price": 3}')
    assert ("error" in refused[0], refused[1]["seq"]) == (True, 2)
    follower.close()


def test_a_label_alone_is_that_of_an_instance_that_waits_where_there_are_ids() -> None:
    alone = b'{"state": "up"}'
    plain = Follower.open(None, "m", AROW(), InputRules(target="state"), Limits())
    assert outputs(plain, alone)[0]["seq"] == 1
    assert plain.state.learner.steps == 1
    by_id = Follower.open(None, "m", AROW(), InputRules(target="state", id="n"), Limits())
    (refused,) = outputs(by_id, b'{"n": 7, "state": "up"}')
    assert "no instance with the id 7 waits" in refused["error"].replace("'", "")


@pytest.mark.parametrize(
    "line", [rb'{"a": "\ud800", "state": "up"}', rb'{"\udfff": 1, "state": "up"}', rb'{"state": "\ud800"}']
)
def test_half_a_character_is_refused_and_the_next_line_is_answered(line: bytes) -> None:
    follower = Follower.open(None, "m", AROW(), InputRules(target="state"), Limits())
    refused, fine = outputs(follower, line, b'{"a": 1.0, "state": "up"}')
    assert "not valid Unicode" in refused["error"]
    assert fine["seq"] == 1


VALUES = [
    *("1", "-2.5", "1e400", "-1e999", "NaN", "Infinity", "null", "true", '"x"', '"2026-01-02"', '"NA"', "[1]", "{}"),
    *('{"p": {"q": 1}}', "9" * 20, "1" * 400, r'"\ud800"', '""', '"a=b"', "1e-320", r'"\u0000"', '"é"'),
]
NAMES = ["a", "b", "a=b", "state", "id", "dev", "when", "", "p.q", r"\u0000", "x" * 300]


def hostile(rng: random.Random) -> bytes:
    if rng.random() < 0.05:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 30))).replace(b"\n", b"?")
    pairs = ", ".join(f'"{rng.choice(NAMES)}": {rng.choice(VALUES)}' for _ in range(rng.randrange(7)))
    text = f"{{{pairs}}}".encode()
    return text[: rng.randrange(1, len(text) + 1)] if rng.random() < 0.1 else text


@pytest.mark.parametrize("make", [AROW, AROWRegressor, lambda: PerKey(AROW(), key="dev")])
def test_hostile_lines_are_answered_one_by_one_and_replayed_to_the_bit(tmp_path: Path, make: Any) -> None:
    rng = random.Random(3)
    how = InputRules(target="state", id="id", dates={"when": ["hour", "weekday"]})
    follower = Follower.open(tmp_path, "m", make(), how, Limits(waiting=50))
    for _ in range(60):
        lines = [hostile(rng) for _ in range(rng.randrange(1, 40))]
        assert len(follower.process(lines)) == len(lines)
    assert follower.state.learner.steps > 0
    assert follower.database is not None
    follower.database.close()  # as a crash leaves it
    again, recovery = stored(tmp_path, "m")
    assert recovery.set_aside == []
    assert learners.digest(again.learner) == learners.digest(follower.state.learner)
    kept = [(state.row._replace(time=0), state.waiting.dump(), state.ids._known) for state in (again, follower.state)]
    assert kept[0] == kept[1]


def test_lines_are_numbered_as_in_the_file() -> None:
    process = follow("--target", "s")
    out, _ = process.communicate(b'{"a":1,"s":"x"}\n\n{"a":2,"s":"y"}\n  \noops\n\n')
    found = [orjson.loads(text) for text in out.splitlines()]
    assert len(found) == 3
    assert found[2]["line"] == 5


@pytest.mark.parametrize(
    "labels", [[21.5, 22.25], [0.5, 1.5] * 5, [1, 2, 3], [0.5, 1.5] * 6, [i + 0.5 for i in range(12)]]
)
def test_run_and_follow_decide_alike_on_few_targets(
    labels: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"size": i % 7, "price": y} for i, y in enumerate(labels)]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    with path.open("rb") as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert main(["follow", "--target", "price", "--state", str(tmp_path / "s")]) == 0
    state, _ = stored(tmp_path / "s", "follow")
    target_type = streams.read(path, target="price").target_type
    assert (target_type == "number") == state.learner._header()["method"].endswith("regressor")


def test_a_line_without_end_is_rejected_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_LINE", 1000)
    monkeypatch.setattr(following, "_CHUNK", 64)
    good = b'{"a": 1, "y": "up"}'
    long = b'{"a": "' + b"x" * 5000 + b'", "y": "up"}'
    lines = [good, long, good, b"", long, good, long]
    (tmp_path / "lines").write_bytes(b"\n".join(lines))
    with (tmp_path / "lines").open("rb") as source:
        groups = list(following.groups_of_lines(source.fileno()))
    read = [line for group in groups for line in group]
    assert [line for line in read if len(line) < 1000] == [good, good, b"", good]
    assert [len(line) <= 1064 for line in read if len(line) >= 1000] == [True] * 3
    follower = Follower.open(None, "m", AROW(), InputRules(target="y"), Limits())
    output = [orjson.loads(line) for line in follower.process(read)]
    assert ["error" in line for line in output] == [False, True, False, True, False, True]
    assert "longer than" in output[1]["error"]
    assert follower.state.learner.steps == 3
