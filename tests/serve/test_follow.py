"""`varifold follow` as a user runs it: a pipe in, a pipe out, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.following import ask, follow, line, outputs, stored
from tests.serve.server import instance
from varifold import AROW, AROWRegressor, PerKey
from varifold.cli import main
from varifold.errors import DataError
from varifold.serve.core import learners
from varifold.serve.core.input import InputRules
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.follow import Follower


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
    assert b"1 rejected" in errors


def test_labels_that_come_later() -> None:
    process = follow("--id", "n")
    assert ask(process, b'{"f0": 1.0, "n": "a"}\n')["id"] == "a"
    assert ask(process, b'{"n": "a", "state": "up"}\n') == {"seq": 2, "id": "a"}
    assert ask(process, b'{"n": "a", "state": "up"}\n') == {"seq": 1, "duplicate": True, "id": "a"}
    _, errors = process.communicate()
    assert b"rejected" not in errors
    assert b"1 learned in all, 0 wait" in errors


def test_a_label_line_that_comes_again_after_a_restart(tmp_path: Path) -> None:
    sent = [
        b'{"n": 1, "f": 2}',
        b'{"n": 1, "state": "up"}',
        b'{"n": 2, "f": 2, "state": "up"}',
        b'{"n": 2, "state": "up"}',
    ]
    for start in range(2):
        follower = Follower.open(tmp_path / "s", "m", AROW(), InputRules(target="state", id="n"), Limits())
        found = [orjson.loads(answer) for answer in follower.process(sent)]
        assert ["duplicate" in answer for answer in found] == [[False, False, False, True], [True] * 4][start]
        assert [answer["id"] for answer in found] == [1, 1, 2, 2]
        assert (follower.rejected, follower.state.learner.steps) == (0, 2)
        follower.close()


def test_every_refusal_has_its_line_and_the_words_of_follow() -> None:
    follower = Follower.open(None, "m", AROW(), InputRules(target="state", id="n"), Limits())
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
    found = [orjson.loads(answer) for answer in follower.process([line for line, _ in sent])]
    assert [answer["line"] for answer in found] == list(range(1, 9))
    for answer, (_, text) in zip(found, sent, strict=True):
        assert text in answer["error"].replace("id 5 ", "id '5' "), answer
        assert not answer.keys() & {"status", "seq", "label"}
        assert "body" not in answer["error"]
        assert '"x"' not in answer["error"]
    assert (follower.rejected, found[-1]["id"]) == (8, 5)


@pytest.mark.parametrize("huge", [False, True])
def test_an_id_that_is_a_number_and_one_that_is_a_text_are_two(tmp_path: Path, huge: bool) -> None:
    number = 1 << 63 if huge else -1
    texts = [str(number), f'"{number}"', "a"]
    ids = [b"%d" % number, *map(orjson.dumps, texts)]
    fields = InputRules(target="state", id="n")
    follower = Follower.open(tmp_path / "s", "m", AROW(), fields, Limits())
    found = outputs(follower, *(b'{"n": %b, "f": %d}' % (id, i) for i, id in enumerate(ids)))
    assert [answer["id"] for answer in found] == [number, *texts]
    assert not any("duplicate" in answer for answer in found)
    follower.close()
    follower = Follower.open(tmp_path / "s", "m", AROW(), fields, Limits())
    assert len(follower.state.waiting) == 4
    (label,) = outputs(follower, b'{"n": %b, "state": "up"}' % ids[1])
    assert label["id"] == texts[0]
    kept = [follower.state.waiting.get(number) for number in (1, 2, 3, 4)]
    assert [waiting is not None for waiting in kept] == [True, False, True, True]
    follower.close()


def test_answers_under_a_key_name_it() -> None:
    learner = PerKey(AROW(), key="device")
    follower = Follower.open(None, "m", learner, InputRules(target="state", id="n", key="device"), Limits())
    sent = [
        b'{"device": "a", "n": 1, "f": 2}',
        b'{"device": "a", "n": 1, "state": "up"}',
        b'{"device": "b", "n": 9, "state": "up"}',
        b'{"devise": "a", "f": 2, "n": 3}',
        b'{"devise": "a", "f": 2, "state": "up"}',
        b'{"device": "b", "f": 2}',
    ]
    found = [orjson.loads(answer) for answer in follower.process(sent)]
    assert [answer.get("key") for answer in found] == ["a", "a", "b", None, None, "b"]
    assert found[1] == {"seq": 2, "id": 1, "key": "a"}
    assert "no instance with the id" in found[2]["error"]  # a line with id, key and target is the label of another
    for refused in found[3:5]:
        assert refused["error"] == "no key in field 'device', and there is one learner per key; did you mean devise?"
    assert learner.steps == 1


def test_labels_that_json_names_alike() -> None:
    follower = Follower.open(None, "m", AROW(), InputRules(target="state"), Limits())
    follower.process([b'{"f": 1, "state": true}', b'{"f": 2, "state": "true"}'])
    pairs = orjson.loads(follower.process([b'{"f": 1}'])[0])["probabilities"]
    assert [label for label, _ in pairs] == [True, "true"]


@pytest.mark.parametrize("together", [True, False])
def test_a_label_that_comes_with_the_features_again(together: bool) -> None:
    lines = [b'{"n": 1, "f": 2}\n', b'{"n": 1, "f": 2, "state": "up"}\n']
    follower = Follower.open(None, "m", AROW(), InputRules(target="state", id="n"), Limits())
    groups = [lines] if together else [[line] for line in lines]
    found = [orjson.loads(answer) for group in groups for answer in follower.process(group)]
    assert [answer["seq"] for answer in found] == [1, 2]
    assert "duplicate" not in found[1]
    assert "label" in found[1]
    assert (follower.state.learner.steps, len(follower.state.waiting)) == (1, 0)
    assert orjson.loads(follower.process(lines[1:])[0]) == {"seq": 1, "duplicate": True, "id": 1}


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
    state, recovery = stored(tmp_path / "s", "follow")
    assert learners.digest(state.learner) == learners.digest(plain)
    assert recovery.replayed == (80 if sign == signal.SIGKILL else 0)


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

    def signalled(state: ModelState, body: dict[str, Any], text: bytes) -> dict[str, Any]:
        if state.seq == 2:
            os.kill(os.getpid(), sign)
        return learn(state, body, text)

    monkeypatch.setattr(ModelState, "_learn", signalled)
    (tmp_path / "lines").write_bytes(b"".join(line(i) for i in range(1_500)))
    options = ["--target", "state", "--model", "arow", "--state", str(tmp_path / "s")]
    with (tmp_path / "lines").open("rb") as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert main(["follow", *options]) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 1_000
    state, _ = stored(tmp_path / "s", "follow")
    assert (state.seq, state.learner.steps) == (1_000, 1_000)


def test_nothing_is_stored_of_a_group_that_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = ModelState._learn

    def interrupted(state: ModelState, body: dict[str, Any], text: bytes) -> dict[str, Any]:
        if state.seq == 2:
            raise KeyboardInterrupt
        return learn(state, body, text)

    follower = Follower.open(tmp_path, "m", AROW(), InputRules(target="state"), Limits())
    with monkeypatch.context() as patch:
        patch.setattr(ModelState, "_learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            follower.process([line(i) for i in range(4)])
        follower.close()
    assert stored(tmp_path, "m")[0].learner.steps == 0


def test_numbers_are_followed_by_a_regressor() -> None:
    follower = Follower.open(None, "m", AROWRegressor(), InputRules(target="price", id="id"), Limits())
    rows = [orjson.dumps({"size": i % 7, "price": 10.0 * (i % 7)}) for i in range(80)]
    assert all("error" not in orjson.loads(answer) for answer in follower.process(rows))
    (waits,) = follower.process([orjson.dumps({"size": 3, "id": "late"})])
    assert abs(orjson.loads(waits)["label"] - 30.0) < 5.0
    steps = follower.state.learner.steps
    follower.process([orjson.dumps({"id": "late", "price": 30.0})])
    assert follower.state.learner.steps == steps + 1
    (refused,) = follower.process([orjson.dumps({"size": 3, "price": "dear"})])
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


@pytest.mark.parametrize("held", [None, 5])
def test_a_state_keeps_its_number_of_keys(
    held: int | None, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [orjson.dumps({"k": f"p{i}", "a": 1.0, "y": "up"}) for i in range(10)]
    (tmp_path / "rows").write_bytes(b"\n".join(rows))
    given = [] if held is None else ["--max-keys", str(held)]

    def run(*more: str) -> int:
        with (tmp_path / "rows").open("rb") as source:
            monkeypatch.setattr(sys, "stdin", source)
            options = ["--target", "y", "--key", "k", "--model", "arow", "--state", str(tmp_path / "s")]
            return main(["follow", *options, *more])

    assert [run(*given), run(*given), run()] == [0, 0, 0]
    assert run("--max-keys", "7") == 2
    was = "keeps all keys" if held is None else "keeps 5 keys"
    assert f"--max-keys 7: the state in {tmp_path / 's'} {was}; leave --max-keys out" in capfd.readouterr().err
    state, _ = stored(tmp_path / "s", "follow")
    assert (state.learner.max_keys, len(state.learner.keys), state.learner.steps) == (held, held or 10, 30)


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


@pytest.mark.parametrize("size", [1, 40, 200])
@pytest.mark.parametrize(
    ("pattern", "remedy"), [("{},5", "write them without quotes"), ("serial {}", "if they identify the rows")]
)
def test_labels_most_of_which_differ_stop_it_before_they_are_learned(size: int, pattern: str, remedy: str) -> None:
    def follower(regressor: Any) -> Follower:
        return Follower.open(None, "model", AROW(), InputRules(target="state"), Limits(), regressor)

    lines = [line(i, state=pattern.format(i)) for i in range(200)]
    groups = [lines[k : k + size] for k in range(0, 200, size)]
    stopped = follower(AROWRegressor)
    with pytest.raises(DataError, match=rf"different labels among the first .*{remedy}.*--target-type class"):
        list(map(stopped.process, groups))
    assert stopped.state.learner.steps <= 50
    given = follower(None)  # --target-type class
    for group in groups:
        given.process(group)
    assert given.state.learner.steps == 200


def test_ids_belong_to_a_key(tmp_path: Path) -> None:
    """Two devices count 1, 2, 3: the second is no duplicate, and labels reach the learner of their device."""
    fields = InputRules(target="state", id="n", key="device")
    follower = Follower.open(tmp_path / "s", "m", PerKey(AROW(), key="device"), fields, Limits())
    found = outputs(
        follower,
        b'{"device": "a", "n": 1, "f": 1}',
        b'{"device": "b", "n": 1, "f": -1}',
        b'{"device": "b", "n": 1, "state": "down"}',
        b'{"device": "a", "n": 1, "state": "up"}',
        b'{"device": "a", "n": 1, "state": "up"}',
    )
    assert ["duplicate" in answer for answer in found] == [False, False, False, False, True]
    assert [follower.state.learner.learner(key).classes for key in "ab"] == [["up"], ["down"]]
    follower.close()


def test_it_works_without_orjson(tmp_path: Path) -> None:
    code = "import sys; sys.modules['orjson'] = None; from varifold.cli import main; raise SystemExit(main())"
    options = ["--target", "state", "--id", "n", "--state", str(tmp_path / "s"), "--model", "arow"]
    sent = b'{"n": 1, "f": NaN}\n{"n": 1, "state": "up"}\n{"f": 2, "state": 1}\n{"f": 2, "state": "1"}\n{"f": 1}\n{\n'
    command = [sys.executable, "-c", code, "follow", *options]
    found = subprocess.run(command, input=sent, capture_output=True, check=True)
    outputs = [json.loads(text) for text in found.stdout.splitlines()]
    assert [answer.get("seq") for answer in outputs] == [1, 2, 3, 4, 4, None]
    assert outputs[4]["probabilities"].keys() == {"up", "1"}
