"""`varifold follow` as a user runs it: a pipe in, a pipe out, killed and started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.server import instance
from varifold import AROW, AROWRegressor, PerKey, streams
from varifold.cli import main
from varifold.errors import DataError
from varifold.serve.core import learners
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.core.store import Policy, Store
from varifold.serve.follow import Follower
from varifold.serve.lines import Fields


def line(i: int, **more: Any) -> bytes:
    found = instance(i)
    return orjson.dumps({**found["x"], "state": found["y"], **more}) + b"\n"


def follow(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "varifold", "follow", "--target", "state", "--model", "arow", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )


def ask(process: subprocess.Popen[bytes], data: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(data)
    process.stdin.flush()
    found: dict[str, Any] = orjson.loads(process.stdout.readline())
    return found


def test_every_line_is_answered_at_once_and_learned() -> None:
    process = follow()
    plain = AROW()
    for i in range(50):
        x, y = instance(i).values()
        assert ask(process, line(i))["label"] == plain.predict_one(x)
        plain.learn_one(x, y)
    assert ask(process, b'{"f0": 2.0}\n')["label"] == plain.predict_one({"f0": 2.0})
    assert "not JSON" in ask(process, b"{\n")["error"]
    _, errors = process.communicate()
    assert process.returncode == 0
    assert b"52 lines, 50 learned in all" in errors
    assert b"1 refused" in errors


def test_labels_that_come_later() -> None:
    process = follow("--id", "n")
    assert ask(process, b'{"f0": 1.0, "n": "a"}\n')["id"] == "a"
    assert ask(process, b'{"n": "a", "state": "up"}\n') == {"seq": 2, "id": "a"}
    assert ask(process, b'{"n": "a", "state": "up"}\n') == {"seq": 1, "duplicate": True, "id": "a"}
    _, errors = process.communicate()
    assert b"refused" not in errors
    assert b"1 learned in all, 0 wait" in errors


def test_a_label_line_that_comes_again_after_a_restart(tmp_path: Path) -> None:
    sent = [
        b'{"n": 1, "f": 2}',
        b'{"n": 1, "state": "up"}',
        b'{"n": 2, "f": 2, "state": "up"}',
        b'{"n": 2, "state": "up"}',
    ]
    for start in range(2):
        follower = Follower.open(tmp_path / "s", "m", AROW(), Fields("state", "n"), Limits())
        found = [orjson.loads(answer) for answer in follower.answer(sent)]
        assert ["duplicate" in answer for answer in found] == [[False, False, False, True], [True] * 4][start]
        assert [answer["id"] for answer in found] == [1, 1, 2, 2]
        assert (follower.refused, follower.state.learner.steps) == (0, 2)
        follower.close()


def test_every_refusal_has_its_line_and_the_words_of_follow() -> None:
    follower = Follower.open(None, "m", AROW(), Fields("state", "n"), Limits())
    sent = [
        (b'{"f": Infinity}', "feature 'f' is inf"),
        (b'{"f": Infinity, "n": 1}', "feature 'f' is inf"),
        (b'{"f": "o", "f=o": 1, "state": "up"}', "f=o"),
        (b"{", "not JSON"),
        (b"[1]", "a list where an object {...} was expected"),
        (b'{"f": 1, "n": 1.5}', "the id in field 'n' is '1.5'"),
        (b'{"n": 1.5, "state": "up"}', "the id in field 'n' is '1.5'"),
        (b'{"n": 5, "state": "up"}', "no instance with the id '5' waits"),
    ]
    found = [orjson.loads(answer) for answer in follower.answer([line for line, _ in sent])]
    assert [answer["line"] for answer in found] == list(range(1, 9))
    for answer, (_, text) in zip(found, sent, strict=True):
        assert text in answer["error"].replace("id 5 ", "id '5' "), answer
        assert not answer.keys() & {"status", "seq", "label"}
        assert "body" not in answer["error"]
        assert '"x"' not in answer["error"]
    assert (follower.refused, found[-1]["id"]) == (8, 5)


@pytest.mark.parametrize("huge", [False, True])
def test_an_id_that_is_a_number_and_one_that_is_a_text_are_two(tmp_path: Path, huge: bool) -> None:
    number = 1 << 63 if huge else -1
    texts = [str(number), f'"{number}"', "a"]
    ids = [b"%d" % number, *map(orjson.dumps, texts)]
    fields = Fields("state", "n")
    follower = Follower.open(tmp_path / "s", "m", AROW(), fields, Limits())
    found = answers(follower, *(b'{"n": %b, "f": %d}' % (id, i) for i, id in enumerate(ids)))
    assert [answer["id"] for answer in found] == [texts[0] if huge else number, *texts]
    assert not any("duplicate" in answer for answer in found)
    follower.close()
    follower = Follower.open(tmp_path / "s", "m", AROW(), fields, Limits())
    assert len(follower.state.waiting) == 4
    (label,) = answers(follower, b'{"n": %b, "state": "up"}' % ids[1])
    assert label["id"] == texts[0]
    kept = [follower.state.waiting.get(number) for number in (1, 2, 3, 4)]
    assert [waiting is not None for waiting in kept] == [True, False, True, True]
    follower.close()


def test_answers_under_a_key_name_it() -> None:
    learner = PerKey(AROW(), key="device")
    follower = Follower.open(None, "m", learner, Fields("state", "n", key="device"), Limits())
    sent = [
        b'{"device": "a", "n": 1, "f": 2}',
        b'{"device": "a", "n": 1, "state": "up"}',
        b'{"device": "b", "n": 9, "state": "up"}',
        b'{"devise": "a", "f": 2, "n": 3}',
        b'{"devise": "a", "f": 2, "state": "up"}',
        b'{"device": "b", "f": 2}',
    ]
    found = [orjson.loads(answer) for answer in follower.answer(sent)]
    assert [answer.get("key") for answer in found] == ["a", "a", "b", None, None, "b"]
    assert found[1] == {"seq": 2, "id": 1, "key": "a"}
    assert "no instance with the id" in found[2]["error"]  # a line with id, key and target is the label of another
    for refused in found[3:5]:
        assert refused["error"] == "no key in field 'device', and there is one learner per key; did you mean devise?"
    assert learner.steps == 1


def test_labels_that_json_names_alike() -> None:
    follower = Follower.open(None, "m", AROW(), Fields("state"), Limits())
    follower.answer([b'{"f": 1, "state": true}', b'{"f": 2, "state": "true"}'])
    pairs = orjson.loads(follower.answer([b'{"f": 1}'])[0])["probabilities"]
    assert [label for label, _ in pairs] == [True, "true"]


@pytest.mark.parametrize("together", [True, False])
def test_a_label_that_comes_with_the_features_again(together: bool) -> None:
    lines = [b'{"n": 1, "f": 2}\n', b'{"n": 1, "f": 2, "state": "up"}\n']
    follower = Follower.open(None, "m", AROW(), Fields("state", "n"), Limits())
    groups = [lines] if together else [[line] for line in lines]
    found = [orjson.loads(answer) for group in groups for answer in follower.answer(group)]
    assert [answer["seq"] for answer in found] == [1, 2]
    assert "duplicate" not in found[1]
    assert "label" in found[1]
    assert (follower.state.learner.steps, len(follower.state.waiting)) == (1, 0)
    assert orjson.loads(follower.answer(lines[1:])[0]) == {"seq": 1, "duplicate": True, "id": 1}


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_state_goes_on_after_a_stop(tmp_path: Path, sign: int) -> None:
    plain = AROW()
    plain.reading = {"target": "state"}  # a model file says what its labels were
    for start in (0, 40):
        process = follow("--state", str(tmp_path / "s"))
        for i in range(start, start + 40):
            ask(process, line(i))
            plain.learn_one(*instance(i).values())
        process.send_signal(sign)
        process.communicate()
    store = Store.open(tmp_path / "s" / "models" / "follow", Limits(), Policy())
    assert learners.digest(store.state.learner) == learners.digest(plain)
    assert store.recovery is not None
    assert store.recovery.replayed == (80 if sign == signal.SIGKILL else 0)


def test_one_learner_per_key() -> None:
    process = follow("--key", "device")
    for i in range(40):
        for device, up in (("a", "up"), ("b", "down")):
            ask(process, orjson.dumps({"f0": float(i % 2), "device": device, "state": up}) + b"\n")
    assert ask(process, b'{"f0": 1.0, "device": "b"}\n')["label"] == "down"
    process.communicate()


def test_fields_must_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["follow", "--target", "a", "--id", "a"]) == 2
    assert "different fields" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../x", "", "a/b", ".part"])
def test_a_name_that_is_no_name_of_a_folder(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a" / "b"
    assert main(["follow", "--target", "a", "--model", "arow", "--state", str(folder), "--name", name]) == 2
    assert "1 to 64 letters" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_group_is_learned_waits_for_its_end(
    tmp_path: Path, sign: int, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    learn = ModelState._learn

    def signalled(state: ModelState, body: dict[str, Any]) -> dict[str, Any]:
        if state.seq == 2:
            os.kill(os.getpid(), sign)
        return learn(state, body)

    monkeypatch.setattr(ModelState, "_learn", signalled)
    (tmp_path / "lines").write_bytes(b"".join(line(i) for i in range(1_500)))
    options = ["--target", "state", "--model", "arow", "--state", str(tmp_path / "s")]
    with (tmp_path / "lines").open("rb") as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert main(["follow", *options]) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 1_000
    store = Store.open(tmp_path / "s" / "models" / "follow", Limits(), Policy())
    assert (store.state.seq, store.state.learner.steps) == (1_000, 1_000)


def test_a_group_that_is_half_applied_is_replayed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = ModelState._learn

    def interrupted(state: ModelState, body: dict[str, Any]) -> dict[str, Any]:
        if state.seq == 2:
            raise KeyboardInterrupt
        return learn(state, body)

    follower = Follower.open(tmp_path, "m", AROW(), Fields("state"), Limits())
    with monkeypatch.context() as patch:
        patch.setattr(ModelState, "_learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            follower.answer([line(i) for i in range(4)])
        follower.close()
    assert Store.open(tmp_path / "models" / "m", Limits(), Policy()).state.learner.steps == 4


def test_numbers_are_followed_by_a_regressor() -> None:
    follower = Follower.open(None, "m", AROWRegressor(), Fields("price", "id"), Limits())
    rows = [orjson.dumps({"size": i % 7, "price": 10.0 * (i % 7)}) for i in range(80)]
    assert all("error" not in orjson.loads(answer) for answer in follower.answer(rows))
    (waits,) = follower.answer([orjson.dumps({"size": 3, "id": "late"})])
    assert abs(orjson.loads(waits)["label"] - 30.0) < 5.0
    steps = follower.state.learner.steps
    follower.answer([orjson.dumps({"id": "late", "price": 30.0})])
    assert follower.state.learner.steps == steps + 1
    (refused,) = follower.answer([orjson.dumps({"size": 3, "price": "dear"})])
    assert "finite numbers" in orjson.loads(refused)["error"]


def test_a_state_is_not_followed_with_another_target_or_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "state")
    first = follow("--state", folder)
    ask(first, line(0))
    first.communicate()
    for options, said in (
        (["--target", "stat"], "--target stat: the state in"),
        (["--target", "state", "--key", "f0"], "has one learner for all lines"),
    ):
        assert main(["follow", *options, "--state", folder]) == 2
        assert said in capfd.readouterr().err


PER_KEY = ([], {}), (["--key", "device"], {"device": "a"})


@pytest.mark.parametrize(("options", "key"), PER_KEY)
def test_answers_have_the_sets_of_the_coverages_asked_for(options: list[str], key: dict[str, str]) -> None:
    process = follow("--coverage", "0.95", "--coverage", "0.5", *options)
    plain = AROW(coverages=(0.5, 0.95))
    for i in range(60):
        x, y = instance(i).values()
        expected = {str(c): sorted(plain.predict_set_one(x, c)) for c in plain.coverages}
        found = ask(process, line(i, **key))["sets"]
        assert {c: sorted(labels) for c, labels in found.items()} == expected
        plain.learn_one(x, y)
    process.communicate()


@pytest.mark.parametrize(("options", "key"), PER_KEY)
def test_answers_have_the_intervals_of_the_coverages_asked_for(options: list[str], key: dict[str, str]) -> None:
    process = follow("--target-type", "number", "--coverage", "0.8", *options)
    plain = AROWRegressor(coverages=(0.8,))
    for i in range(60):
        x, y = {"f": i % 7}, 0.5 * (i % 5)
        expected = [None, None] if i < 2 else list(plain.predict_interval_one(x, 0.8))
        assert ask(process, orjson.dumps({**x, **key, "state": y}) + b"\n")["intervals"] == {"0.8": expected}
        plain.learn_one(x, y)
    process.communicate()


def test_a_state_keeps_its_coverages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["follow", "--target", "state", "--model", "arow", "--state", str(tmp_path / "s")]
    for coverages in (["0.9", "0.5"], ["0.5", "0.9"], []):
        process = follow("--state", str(tmp_path / "s"), *(w for c in coverages for w in ("--coverage", c)))
        assert list(ask(process, line(1))["sets"]) == ["0.5", "0.9"]
        process.communicate()
        assert process.returncode == 0
    assert main([*words, "--coverage", "0.5"]) == 2
    assert "holds a learner of the coverages 0.5, 0.9; leave --coverage out" in capfd.readouterr().err
    process = follow("--state", str(tmp_path / "none"))
    ask(process, line(1))
    process.communicate()
    assert main([*words[:-1], str(tmp_path / "none"), "--coverage", "0.5"]) == 2
    assert "holds a learner without intervals and sets" in capfd.readouterr().err


def test_a_model_that_is_not_used_is_told(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    for model, told in (("arow", False), ("arow", False), ("olvf", True)):
        process = follow("--state", folder, "--model", model)
        ask(process, line(0))
        _, errors = process.communicate()
        assert (b"--model olvf is not used" in errors) is told
        assert process.returncode == 0


def test_a_target_that_no_line_has_is_told() -> None:
    process = follow("--target", "stat")
    ask(process, line(0))
    _, errors = process.communicate()
    assert b"no line had the target 'stat': nothing was learned; did you mean state?" in errors


def answers(follower: Follower, *lines: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(answer) for answer in follower.answer(list(lines))]


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
    store = Store.open(tmp_path / "s" / "models" / "follow", Limits(), Policy())
    assert store.state.learner._header()["method"] == method
    assert store.state.learner.steps == len(labels) + 1
    store.close()


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
    assert (process.returncode, "nb3 is a classifier; take a regressor" in errors.decode()) == (2, True), errors


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
        follower = Follower.open(None, "m", AROW(), Fields("state", **how), Limits())
        (found,) = answers(follower, DATE)
        return found, follower.state.learner

    refused, learner = followed()
    assert "holds dates such as '2026-03-04T12:30:00'" in refused["error"]
    assert "--dates when=hour+weekday" in refused["error"]
    assert (refused["line"], learner.steps) == (1, 0)
    assert set(followed(dates={"when": ["hour", "weekday"]})[1].features) == {"load", "when:hour", "when:weekday=Wed"}
    assert set(followed(time="when")[1].features) == {"load"}
    assert set(followed(ignore=["when"])[1].features) == {"load"}
    assert set(followed(categories=["when"])[1].features) == {"load", "when=2026-03-04T12:30:00"}


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
    follower = Follower.open(None, "m", AROW(), Fields("state"), Limits())
    (found,) = answers(follower, line)
    (tmp_path / "one.jsonl").write_bytes(line + b"\n")
    plain = AROW()
    try:
        for block in streams.read([tmp_path / "one.jsonl"], target="state").blocks():
            plain.learn_many(block)
    except DataError as error:
        said = str(error).rpartition("one.jsonl, line 1: ")[2]
        assert found["error"].replace(" at step 1", "") == said
    else:
        assert "error" not in found
    assert learners.digest(follower.state.learner) == learners.digest(plain)


def test_a_refused_line_takes_no_number(tmp_path: Path) -> None:
    follower = Follower.open(tmp_path, "m", AROWRegressor(), Fields("price"), Limits())
    answers(follower, b'{"size": 1, "price": 2}')
    refused = answers(follower, b'{"size": 1, "price": "dear"}', b'{"size": 1, "price": 3}')
    assert ("error" in refused[0], refused[1]["seq"]) == (True, 2)
    follower.close()


def test_a_label_alone_is_that_of_an_instance_that_waits_where_there_are_ids() -> None:
    alone = b'{"state": "up"}'
    plain = Follower.open(None, "m", AROW(), Fields("state"), Limits())
    assert answers(plain, alone)[0]["seq"] == 1
    assert plain.state.learner.steps == 1
    by_id = Follower.open(None, "m", AROW(), Fields("state", "n"), Limits())
    (refused,) = answers(by_id, b'{"n": 7, "state": "up"}')
    assert "no instance with the id 7 waits" in refused["error"].replace("'", "")


def test_only_categories_can_be_given_as_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["follow", "--target", "y", "--types", "a=numeric"]) == 2
    assert "only category can be given, not numeric" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", [rb'{"a": "\ud800", "state": "up"}', rb'{"\udfff": 1, "state": "up"}', rb'{"state": "\ud800"}']
)
def test_half_a_character_is_refused_and_the_next_line_is_answered(line: bytes) -> None:
    follower = Follower.open(None, "m", AROW(), Fields("state"), Limits())
    refused, fine = answers(follower, line, b'{"a": 1.0, "state": "up"}')
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
    how = Fields("state", "id", dates={"when": ["hour", "weekday"]})
    follower = Follower.open(tmp_path, "m", make(), how, Limits(waiting=50))
    for _ in range(60):
        lines = [hostile(rng) for _ in range(rng.randrange(1, 40))]
        assert len(follower.answer(lines)) == len(lines)
    assert follower.state.learner.steps > 0
    assert follower.store is not None
    follower.store.close()  # as a crash leaves it
    again = Store.open(tmp_path / "models" / "m", Limits(waiting=50), Policy())
    assert learners.digest(again.state.learner) == learners.digest(follower.state.learner)
    held = [{**state.dump(), "monitor": None} for state in (again.state, follower.state)]
    assert held[0] == held[1]
    again.close()
