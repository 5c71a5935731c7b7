"""`varifold follow` as a user runs it: a pipe in, a pipe out, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.serve.server import instance
from varifold import AROW, AROWRegressor
from varifold.cli import main
from varifold.serve.core import learners
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.core.store import Policy, Store
from varifold.serve.follow import Follower


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
    assert "has its label" in ask(process, b'{"n": "a", "state": "up"}\n')["error"]
    _, errors = process.communicate()
    assert b"1 learned in all, 0 wait" in errors


@pytest.mark.parametrize("together", [True, False])
def test_a_label_that_comes_with_the_features_again(together: bool) -> None:
    lines = [b'{"n": 1, "f": 2}\n', b'{"n": 1, "f": 2, "state": "up"}\n']
    follower = Follower.open(None, "m", AROW(), "state", "n", Limits())
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

    follower = Follower.open(tmp_path, "m", AROW(), "state", None, Limits())
    with monkeypatch.context() as patch:
        patch.setattr(ModelState, "_learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            follower.answer([line(i) for i in range(4)])
        follower.close()
    assert Store.open(tmp_path / "models" / "m", Limits(), Policy()).state.learner.steps == 4


def test_numbers_are_followed_by_a_regressor() -> None:
    follower = Follower.open(None, "m", AROWRegressor(), "price", "id", Limits())
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
