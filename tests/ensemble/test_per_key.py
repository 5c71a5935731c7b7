"""PerKey: each key as if it had a learner alone, wherever that learner is kept."""

from __future__ import annotations

import copy
import errno
import hashlib
import math
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
from river import linear_model

import varifold
from varifold import AROW, AROWRegressor, GaussianNB, PerKey, PerKeyDetector, PerKeyRegressor
from varifold.base import files
from varifold.ensemble._spill_file import SpillFile
from varifold.errors import (
    BusyLearnerError,
    DataError,
    FeatureNameError,
    FeatureValueError,
    ModelFileError,
    ParameterError,
    TargetError,
    VarifoldError,
)


def stream(n: int = 400, keys: int = 12) -> list[tuple[dict[str, Any], str]]:
    rng = random.Random(3)
    rows = []
    for _ in range(n):
        key = f"d{rng.randrange(keys)}"
        x = {f"f{j}": rng.gauss(0, 1) for j in range(5) if rng.random() < 0.8}
        rows.append(({**x, "device": key}, "up" if sum(x.values()) * (1 if key < "d3" else -1) > 0 else "down"))
    return rows


def without(x: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in x.items() if name != "device"}


@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_beyond_a_number_of_keys_the_one_learned_longest_ago_is_forgotten(most: int) -> None:
    """Predicting with a key does not keep it: recovery on a server repeats what was learned, not what was predicted."""
    model, plain = PerKey(AROW(), key="device", most=most, max_keys=5), {}
    for i, (x, y) in enumerate(stream()):
        if i == 200:
            model = PerKey.from_bytes(model.to_bytes())
        key = x["device"]
        for other in ("d0", "d1", key):
            alone = plain.get(other, AROW())
            assert model.predict_proba_one({**x, "device": other}) == alone.predict_proba_one(without(x))
        plain[key] = plain.pop(key, None) or AROW()
        plain[key].learn_one(without(x), y)
        model.learn_one(x, y)
        if len(plain) > 5:
            del plain[next(iter(plain))]
        assert model.keys == list(plain)
    assert len(model._here) + len(model._spill._where) == 5
    assert model.clone().max_keys == 5
    with pytest.raises(ParameterError, match="'max_keys' parameter of PerKey must be None or an int >= 1"):
        PerKey(AROW(), max_keys=0)


@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_each_key_has_a_learner_of_its_own(most: int) -> None:
    model, plain = PerKey(AROW(), key="device", most=most), {}
    for x, y in stream():
        alone = plain.setdefault(x["device"], AROW())
        assert model.predict_one(x) == alone.predict_one(without(x))
        assert model.predict_proba_one(x) == alone.predict_proba_one(without(x))
        model.learn_one(x, y)
        alone.learn_one(without(x), y)
    assert model.keys == list(plain)
    assert model.steps == 400
    assert sorted(model.classes) == ["down", "up"]
    x = stream()[0][0]
    assert model.explain_one(x) == plain[x["device"]].explain_one(without(x))


def test_only_so_many_are_in_memory() -> None:
    model = PerKey(AROW(), key="device", most=3)
    for x, y in stream():
        model.learn_one(x, y)
        assert len(model._here) <= 3
    assert len(model.keys) == 12


def test_the_least_recently_used_move_to_disk_and_the_last_used_stays() -> None:
    model = PerKey(AROW(), key="device", most=2)
    learners: dict[str, Any] = {}
    for key, used in (("a", "a"), ("b", "a"), ("c", "c")):
        model.learn_one({"device": key, "f": 1.0}, "up")
        learners[key] = model.learner(key)
        model.predict_one({"device": used, "f": 1.0})
    assert model.in_memory() == [learners["a"], learners["c"]]
    model.spill(1 << 30)
    assert model.in_memory() == [learners["c"]]


@pytest.mark.parametrize("most", [2, 100])
def test_save_and_load_go_on(tmp_path: Path, most: int) -> None:
    rows = stream()
    model = PerKey(AROW(r=3.0), key="device", most=most)
    for x, y in rows[:200]:
        model.learn_one(x, y)
    model.save(tmp_path / "m")
    loaded = varifold.load(tmp_path / "m")
    assert isinstance(loaded, PerKey)
    assert varifold.from_bytes(model.to_bytes()).to_bytes() == loaded.to_bytes()
    assert (loaded.keys, loaded.steps, loaded.classes) == (model.keys, model.steps, model.classes)
    for x, y in rows[200:]:
        assert loaded.predict_proba_one(x) == model.predict_proba_one(x)
        for one in (loaded, model):
            one.learn_one(x, y)


def test_a_prediction_of_an_unknown_key_makes_no_learner() -> None:
    model = PerKey("arow:r=1", key="device")
    assert model.predict_one({"device": "a", "f": 1.0}) is None
    assert model.predict_proba_one({"device": "a", "f": 1.0}) == {}
    assert model.keys == []


@pytest.mark.parametrize("x", [{}, {"device": None}, {"device": 1.5}, {"device": True}])
def test_a_key_must_be_there(x: dict[str, Any]) -> None:
    model = PerKey(AROW(), key="device")
    for call in (lambda: model.learn_one(x, "up"), lambda: model.predict_one(x)):
        with pytest.raises(FeatureValueError, match="the key 'device' is"):
            call()


def test_a_rejected_instance_makes_no_learner() -> None:
    model = PerKey(AROW(), key="device")
    with pytest.raises(FeatureValueError):
        model.learn_one({"device": "a", "f": float("inf")}, "up")
    assert (model.keys, model.steps, model.classes) == ([], 0, [])


def test_wrong_parameters() -> None:
    with pytest.raises(ParameterError, match="'most' parameter of PerKey"):
        PerKey(AROW(), most=0)
    with pytest.raises(ParameterError, match="'key' parameter of PerKey"):
        PerKey(AROW(), key=1.5)  # type: ignore[arg-type]


def test_a_file_of_one_learner_is_no_file_of_many(tmp_path: Path) -> None:
    AROW().save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="holds a AROW, not a PerKey"):
        PerKey.load(tmp_path / "m")


def test_prequential_runs_it() -> None:
    result = varifold.evaluate.prequential(PerKey(AROW(), key="device"), stream())
    assert result.accuracy > 0.65


# ---------------------------------------------------------------- learners on disk


class Mine(AROW):
    """A learner that no registry knows."""


def trained(most: int, n: int = 100, learner: type[AROW] = AROW) -> PerKey:
    model = PerKey(learner(), key="device", most=most)
    for x, y in stream()[:n]:
        model.learn_one(x, y)
    return model


def fail(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def half(fd: int, data: bytes, offset: int) -> int:
    return len(data) // 2


@pytest.mark.parametrize("pwrite", [fail, half])
@pytest.mark.parametrize("key", ["new", "d0", "d1"])
def test_a_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch, key: str, pwrite: Callable[..., int]) -> None:
    model, twin = trained(most=1), trained(most=1_000)
    model.learner("d2")
    before = model.to_bytes()
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", pwrite)
        with pytest.raises(OSError, match=r"space|fit on the disk"):
            model.learn_one({"device": key, "f0": 1.0}, "never seen")
    assert model.to_bytes() == before
    for x, y in [*stream()[100:160], ({"device": key, "f0": 1.0}, "up")]:
        assert model.predict_proba_one(x) == twin.predict_proba_one(x)
        for one in (model, twin):
            one.learn_one(x, y)


def test_a_learner_that_cannot_be_read_back_stays_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained(most=1)
    model.learner("d2")
    before = model.to_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", lambda fd, size, start: b"")
        with pytest.raises(ModelFileError):
            model.learn_one({"device": "d0", "f0": 1.0}, "up")
    assert model.to_bytes() == before


def test_a_copied_file_holds_the_same_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpillFile, "_SLACK", 0)
    model, twin = trained(most=1, n=400), trained(most=1_000, n=400)
    assert [one.to_bytes() for _, one in model.items()] == [one.to_bytes() for _, one in twin.items()]
    assert os.fstat(model.open_files()[0]).st_size <= 4 * sum(len(one.to_bytes()) for _, one in twin.items())


def test_bytes_that_were_replaced_do_not_stay_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpillFile, "_SLACK", 0)
    file = SpillFile()
    file.put("a", bytes(1_000))
    for i in range(100):
        file.replace("a", bytes([i]) * 1_000)
    assert file.read("a") == bytes([99]) * 1_000
    assert os.fstat(file.open_files()[0]).st_size <= 4_000


def test_a_file_that_cannot_be_copied_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained(most=1)
    model.learner("d2")
    before, open_before = model.to_bytes(), model.open_files()
    real = os.pwrite
    calls: list[int] = []

    def fail_at_third(fd: int, data: bytes, offset: int) -> int:
        calls.append(fd)
        return fail() if len(calls) == 3 else real(fd, data, offset)

    with monkeypatch.context() as full:
        full.setattr(model._spill, "_SLACK", -(1 << 40), raising=False)
        full.setattr(os, "pwrite", fail_at_third)
        with pytest.raises(OSError, match="space"):
            model.learner("d0")
    assert calls[0] not in open_before
    assert model.open_files() == open_before
    assert model.to_bytes() == before


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_go_their_own_ways(copied: Callable[[PerKey], PerKey]) -> None:
    first, twin = trained(most=1), trained(most=1_000)
    second, twin_of_second = copied(first), trained(most=1_000)
    for x, y in stream()[100:180]:
        other = "down" if y == "up" else "up"
        for model, label in ((first, y), (twin, y), (second, other), (twin_of_second, other)):
            model.learn_one(x, label)
        assert first.predict_proba_one(x) == twin.predict_proba_one(x)
        assert second.predict_proba_one(x) == twin_of_second.predict_proba_one(x)
    assert (first.steps, second.steps) == (180, 180)


def test_a_learner_of_no_registry_comes_back_from_disk() -> None:
    model, twin = trained(most=1, learner=Mine), trained(most=1_000, learner=Mine)
    for x, _ in stream():
        assert model.predict_proba_one(x) == twin.predict_proba_one(x)


def test_learners_of_the_other_task_are_rejected() -> None:
    with pytest.raises(ParameterError, match="PerKey holds classifiers; AROWRegressor is a regressor: take PerKeyRegr"):
        PerKey("arowregressor", key="device")
    with pytest.raises(ParameterError, match="PerKeyRegressor holds regressors; AROW is a classifier: take PerKey"):
        PerKeyRegressor("arow", key="device")


@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_each_key_has_a_regressor_of_its_own(most: int, tmp_path: Path) -> None:
    model, plain = PerKeyRegressor(AROWRegressor(), key="device", most=most), {}
    for x, y in stream():
        target = 5.0 * len(x) + (y == "up")
        alone = plain.setdefault(x["device"], AROWRegressor())
        assert model.predict_one(x) == alone.predict_one(without(x))
        model.learn_one(x, target)
        alone.learn_one(without(x), target)
    assert model.steps == 400
    x = stream()[0][0]
    assert model.explain_one(x) == plain[x["device"]].explain_one(without(x))
    model.save(tmp_path / "m")
    loaded = varifold.load(tmp_path / "m")
    assert isinstance(loaded, PerKeyRegressor)
    assert [loaded.predict_one(x) for x, _ in stream()] == [model.predict_one(x) for x, _ in stream()]
    with pytest.raises(TargetError, match="finite numbers"):
        model.learn_one(x, "dear")
    assert model.steps == 400
    with pytest.raises(ModelFileError, match="holds a PerKeyRegressor, not a PerKey;"):
        PerKey.load(tmp_path / "m")


def test_regressors_by_key_are_evaluated_and_take_late_targets() -> None:
    rows = [(x, 5.0 * len(x) + (x["device"] < "d3")) for x, _ in stream()]
    found = varifold.evaluate.prequential(PerKeyRegressor(AROWRegressor(), key="device"), rows)
    model, errors = PerKeyRegressor(AROWRegressor(), key="device"), []
    for step, (x, y) in enumerate(rows):
        if step:  # there is no interval before any target
            errors.append(abs(model.predict_one(x) - y))
        model.learn_one(x, y)
    assert found.mae == pytest.approx(sum(errors) / len(errors))
    late = varifold.evaluate.prequential(PerKeyRegressor(AROWRegressor(), key="device"), rows, delay=20)
    assert late.mae != found.mae


@pytest.mark.parametrize("call", ["predict_one", "predict_proba_one", "explain_one"])
@pytest.mark.parametrize("given", [5, None, [("device", "a")]])
def test_an_instance_that_is_no_mapping_is_rejected(call: str, given: object) -> None:
    model = PerKey(AROW(), key="device")
    model.learn_one({"device": "a", "load": 1.0}, "up")
    with pytest.raises(DataError, match=r"for one learner per 'device' is of type \w+; pass a mapping"):
        getattr(model, call)(given)
    with pytest.raises(DataError, match="pass a mapping"):
        model.learn_one(given, "up")  # type: ignore[arg-type]
    assert model.steps == 1


@pytest.mark.parametrize("make", [PerKey, PerKeyRegressor])
def test_many_at_once_is_one_after_the_other(make: Any) -> None:
    rng = random.Random(9)
    rows = [{"device": rng.randrange(3), "a": rng.gauss(0, 1), "b": rng.gauss(0, 1)} for _ in range(120)]
    targets: list[Any] = [x["a"] + x["b"] if make is PerKeyRegressor else x["a"] > 0 for x in rows]
    weights = [rng.choice((0.5, 1.0, 2.0)) for _ in rows]
    inner = AROWRegressor if make is PerKeyRegressor else AROW
    alone, many, framed, block = (make(inner(), key="device") for _ in range(4))
    for x, y, w in zip(rows, targets, weights, strict=True):
        alone.learn_one(x, y, w)
    many.learn_many(rows, targets, weights)
    frame = pandas.DataFrame(rows, index=range(1000, 1120))
    framed.learn_many(frame, targets, weights)
    block.learn_many(varifold.Block.from_dicts(rows, targets, weights))
    assert alone.to_bytes() == many.to_bytes() == framed.to_bytes() == block.to_bytes()
    wanted = [alone.predict_one(x) for x in rows]
    assert alone.predict_many(rows) == wanted
    found = alone.predict_many(frame)
    assert found.tolist() == wanted
    assert list(found.index) == list(frame.index)


def test_intervals_are_those_of_the_keys_learner() -> None:
    rng = random.Random(1)
    model, plain = PerKeyRegressor(AROWRegressor(coverages=(0.5, 0.9)), key="device", most=1), {}
    rows = [({"device": rng.choice("ab"), "f": rng.gauss(0, 1)}, rng.gauss(0, 1)) for _ in range(200)]
    for x, y in rows:
        model.learn_one(x, y)
        plain.setdefault(x["device"], AROWRegressor(coverages=(0.5, 0.9))).learn_one(without(x), y)
    assert model.coverages == (0.5, 0.9)
    wanted = [plain[x["device"]].predict_interval_one(without(x), 0.5) for x, _ in rows]
    assert model.predict_interval_many([x for x, _ in rows], 0.5) == wanted
    with pytest.raises(ParameterError, match=r"no coverage 0\.7"):
        model.predict_interval_one(rows[0][0], 0.7)


def test_sets_are_those_of_the_keys_learner() -> None:
    model, plain = PerKey(AROW(coverages=(0.8,)), key="device"), {}
    for x, y in stream():
        model.learn_one(x, y)
        plain.setdefault(x["device"], AROW(coverages=(0.8,))).learn_one(without(x), y)
    rows = [x for x, _ in stream()[:50]]
    assert model.predict_set_many(rows, 0.8) == [plain[x["device"]].predict_set_one(without(x), 0.8) for x in rows]


def test_a_file_with_a_damaged_learner_is_rejected_also_beyond_the_bound() -> None:
    model = PerKey(AROW(), key="device", most=2)
    for x, y in stream():
        model.learn_one(x, y)
    header, arrays, _ = files.decode_bytes(model.to_bytes())
    parts, ends = arrays["learners"].copy(), arrays["learners.offsets"]
    parts[ends[-2] + 30 : ends[-1]] = 0
    with pytest.raises(ModelFileError):
        PerKey.from_bytes(files.encode(header, {**arrays, "learners": parts}))


def test_learners_that_no_file_can_hold_are_rejected() -> None:
    with pytest.raises(ParameterError, match="LinearRegression is none"):
        PerKeyRegressor(linear_model.LinearRegression(), key="device")
    with pytest.raises(ParameterError, match="PerKeyRegressor is none"):
        PerKeyRegressor(PerKeyRegressor(AROWRegressor(), key="device"), key="site")


@pytest.mark.parametrize(
    ("rows", "targets", "message"),
    [
        ([{"device": "a", "f": 1.0}] * 3, None, "y is missing; pass a target per instance"),
        ([{"device": "a", "f": 1.0}] * 2, [1.0], "1 labels or targets for 2 instances"),
        ([{"device": "a", "f": 1.0}, {"f": 1.0}], [1.0, 2.0], "instance 1: the key 'device' is None"),
        ([{"device": "a", "f": 1.0}, {"device": "a", "f": float("inf")}], [1.0, 2.0], "instance 1: feature 'f'"),
    ],
)
@pytest.mark.parametrize("framed", [False, True])
def test_many_that_are_rejected_change_nothing(rows: Any, targets: Any, message: str, framed: bool) -> None:
    model = PerKeyRegressor(AROWRegressor(), key="device")
    model.learn_one({"device": "a", "f": 2.0}, 1.0)
    before = model.to_bytes()
    given = pandas.DataFrame(rows) if framed else rows
    with pytest.raises(VarifoldError, match=None if framed else message):
        model.learn_many(given, targets)
    assert model.to_bytes() == before


def test_keys_of_numpy() -> None:
    model = PerKey(AROW(), key="device")
    model.learn_one({"device": np.int64(3), "f": 1.0}, "up")
    assert model.keys == [3]


# ---------------------------------------------------------------- threads, forks, learners that cannot be saved


def test_a_second_thread_gets_an_error_and_nothing_is_lost() -> None:
    model = PerKey(AROW(), key="device", most=2)
    done: list[int] = []

    def work(number: int) -> None:
        learned = 0
        for i in range(300):
            try:
                model.learn_one({"device": f"d{(number + i) % 9}", "load": float(i % 5)}, "high" if i % 2 else "low")
                learned += 1
                model.predict_one({"device": f"d{i % 9}", "load": 1.0})
            except BusyLearnerError:
                continue
        done.append(learned)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(done) == 4
    assert model.steps == sum(done) == sum(learner.steps for _, learner in model.items())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_after_a_fork_each_process_has_its_own_learners() -> None:
    model, twin = (PerKey(AROW(), key="device", most=1) for _ in range(2))
    for x, y in stream()[:200]:
        model.learn_one(x, y)
        twin.learn_one(x, y)
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for x, y in stream()[200:]:
                model.learn_one(x, y)
            os.write(there, hashlib.sha256(model.to_bytes()).digest())
            code = 0
        finally:
            os._exit(code)
    for x, _ in stream()[200:]:
        model.learn_one(x, "other")  # meanwhile, to the same keys
    assert os.waitpid(child, 0)[1] == 0
    digest = os.read(here, 32)
    os.close(here)
    os.close(there)
    parent = copy.deepcopy(twin)
    for x, y in stream()[200:]:
        twin.learn_one(x, y)
        parent.learn_one(x, "other")
    assert digest == hashlib.sha256(twin.to_bytes()).digest()
    assert model.to_bytes() == parent.to_bytes()


def test_a_learner_that_no_file_can_hold_stays_in_memory_and_the_others_continue() -> None:
    model = PerKey(AROW(), key="device", most=2)
    model.learn_one({"device": "odd", "load": 1.0}, frozenset({1}))
    for i in range(60):
        model.learn_one({"device": f"d{i % 6}", "load": float(i % 5)}, "high" if i % 2 else "low")
    assert model.steps == 61
    assert len(model._here) <= 2
    assert model.predict_one({"device": "odd", "load": 1.0}) == frozenset({1})
    with pytest.raises(ModelFileError, match="frozenset"):
        model.to_bytes()


def test_detectors_per_key_are_those_of_each_key(tmp_path):
    model = varifold.PerKeyDetector("taildetector:window=50", key="device", most=1)
    alone = {device: varifold.TailDetector(window=50) for device in "ab"}
    rng = random.Random(8)
    for step in range(200):
        device = "ab"[step % 2]
        x = {"load": rng.gauss(0, 1) + 100 * (device == "b"), "kind": "x"}
        assert model.score_one({**x, "device": device}) == alone[device].score_one(x)
        assert model.p_value_one({**x, "device": device}) == alone[device].p_value_one(x)
        both = (alone[device].score_one(x), alone[device].p_value_one(x))
        assert model.score_and_p_value_one({**x, "device": device}) == both
        model.learn_one({**x, "device": device})
        alone[device].learn_one(x)
    model.save(tmp_path / "model")
    again = varifold.load(tmp_path / "model")
    odd = {"device": "a", "load": 100.0}
    assert again.score_one(odd) == model.score_one(odd) == alone["a"].score_one({"load": 100.0})
    assert model.is_anomaly_one(odd, rate=0.05)
    assert again.steps == 200


def test_a_detector_is_for_its_own_class():
    with pytest.raises(varifold.errors.ParameterError, match="take PerKeyDetector"):
        varifold.PerKey(varifold.TailDetector())
    with pytest.raises(varifold.errors.ParameterError, match="holds detectors"):
        varifold.PerKeyDetector(varifold.AROW())


def test_labels_weigh_the_experts_of_one_key() -> None:
    model = varifold.PerKeyDetector(varifold.AutoDetector(), key="device")
    rng = random.Random(1)
    for _ in range(300):
        for device in ("a", "b"):
            load = rng.gauss(0.0, 1.0)
            model.learn_one({"device": device, "load": load, "heat": load + rng.gauss(0.0, 0.1)})
    for _ in range(10):
        load = rng.gauss(0.0, 1.0)
        model.label_one({"device": "a", "load": load, "heat": load}, anomaly=False)
        model.label_one({"device": "a", "load": 1.0, "heat": -1.0}, anomaly=True)
    a, b = model.learner("a"), model.learner("b")
    assert a.weights != b.weights == varifold.AutoDetector().weights
    assert a.weights["tail"] < b.weights["tail"]
    with pytest.raises(varifold.errors.DataError, match="'c' has no detector"):
        model.label_one({"device": "c", "load": 1.0}, anomaly=True)
    with pytest.raises(varifold.errors.ParameterError, match="learns no labels"):
        varifold.PerKeyDetector(varifold.TailDetector(), key="device").label_one({"device": "a"}, anomaly=True)


def test_labels_are_for_one_thread_at_a_time() -> None:
    model = varifold.PerKeyDetector(varifold.AutoDetector(), key="device")
    model.learn_one({"device": "a", "load": 1.0})
    errors: list[BaseException] = []

    def label() -> None:
        try:
            model.label_one({"device": "a", "load": 1.0}, anomaly=True)
        except BusyLearnerError as error:
            errors.append(error)

    with model._lock:
        thread = threading.Thread(target=label)
        thread.start()
        thread.join(10.0)
    thread.join()
    assert len(errors) == 1


def test_keys_of_a_subclass_are_plain_values() -> None:
    class Apart(str):
        """A text that is equal to nothing but itself."""

        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    model = PerKey(AROW(), key="device", most=2)
    for step in range(6):
        model.learn_one({"device": Apart("a"), "load": float(step)}, step % 2)
    assert model.keys == ["a"]
    assert type(model.keys[0]) is str
    assert PerKey.from_bytes(model.to_bytes()).keys == ["a"]


@pytest.mark.parametrize(("method", "learns"), [("gaussiannb", True), ("arow", False)])
def test_an_instance_without_a_label_is_learned_if_the_learner_can(method: str, learns: bool) -> None:
    model = PerKey(method, key="device")
    for label in (None, math.nan):
        model.learn_one({"device": "a", "f": 1.0}, label)
    assert (model.steps, model.keys, model.classes) == ((2, ["a"], []) if learns else (0, [], []))
    model.learn_one({"device": "a", "f": 1.0}, "p", 0.0)
    model.learn_one({"device": "a", "f": 1.0}, "p")
    assert model.classes == ["p"]


@pytest.mark.parametrize("step", [0, 4, -7])
def test_a_schedule_of_rows_outside_the_block_learns_nothing(step: int) -> None:
    model = PerKey(AROW(), key="key")
    block = varifold.to_block([{"key": "a", "f": float(i)} for i in range(3)], ["x", "y", "x"])
    with pytest.raises(DataError, match="rows that are not in the block"):
        model.run_block(block, np.array([1, -1, step]))
    assert model.steps == 0


def test_an_instance_without_a_label_is_learned_where_the_learner_does() -> None:
    """By `learn_one`, and by a schedule that withholds the label; with its weight."""
    rows, weights = [{"key": "a", "f": float(i)} for i in range(4)], [1.0, 2.0, 1.0, 3.0]
    one, many = (PerKey(varifold.AutoClassifier(unlabelled="learn"), key="key") for _ in range(2))
    for x, y, w in zip(rows, ["x", "y", "x", None], weights, strict=True):
        one.learn_one(x, y, w)
    many.run_block(varifold.to_block(rows, ["x", "y", "x", "y"], weights), np.array([-1, -2, -3, -(len(rows) + 4)]))
    assert (one.steps, one.classes) == (4, ["x", "y"])
    assert many.to_bytes() == one.to_bytes()


@pytest.mark.parametrize("unlabelled", ["learn", "ignore"])
def test_an_evaluation_learns_instances_without_a_label_as_the_learner_would_alone(unlabelled: str) -> None:
    alone = varifold.AutoClassifier(unlabelled=unlabelled)
    by_key = PerKey(varifold.AutoClassifier(unlabelled=unlabelled), key="key")
    stream = [({"f": float(i % 3)}, None if i % 2 else "xy"[i // 2 % 2]) for i in range(40)]
    varifold.evaluate.prequential(alone, stream)
    varifold.evaluate.prequential(by_key, [({"key": "a", **x}, y) for x, y in stream])
    assert by_key.steps == alone.steps == (40 if unlabelled == "learn" else 20)
    found = by_key.learner("a")
    assert found is not None
    assert found.to_bytes() == alone.to_bytes()


def test_with_a_bound_of_keys_the_disk_is_bounded() -> None:
    model = PerKey(AROW(), key="device", most=2, max_keys=5)
    model._spill._SLACK = 1_000
    for step in range(500):
        model.learn_one({"device": step, "f": 1.0}, "up")
    size = model._spill.size_of(495)
    assert model.keys == [495, 496, 497, 498, 499]
    assert os.fstat(model._spill._fd).st_size < 1_000 + 10 * size


def test_missing_labels_among_many_are_learned_as_one_by_one() -> None:
    rows = [{"device": "ab"[i % 2], "f": float(i % 5)} for i in range(40)]
    labels = ["high" if i % 5 > 2 else "low" if i % 3 else None for i in range(40)]
    for blank in (AROW(), GaussianNB()):
        one, many = PerKey(blank, key="device"), PerKey(blank, key="device")
        for x, y in zip(rows, labels, strict=True):
            one.learn_one(x, y)
        many.learn_many(rows, labels)
        assert many.to_bytes() == one.to_bytes()
    many_numbers = PerKeyRegressor(AROWRegressor(), key="device")
    many_numbers.learn_many(rows, [None if y is None else float(len(y)) for y in labels])
    assert many_numbers.steps == sum(y is not None for y in labels)


def test_a_name_that_two_rows_use_for_different_features_changes_nothing() -> None:
    for model, truth in ((PerKey(AROW(), key="d"), [[0, 1]]), (PerKeyDetector("taildetector", key="d"), [])):
        before = model.to_bytes()
        with pytest.raises(FeatureNameError, match="instance 1: feature 'f=v' is both"):
            model.learn_many([{"d": 1, "f=v": 1.0}, {"d": 1, "f": "v"}], *truth)
        assert model.to_bytes() == before
        model.learn_many([{"d": 1, "f=v": 1.0}, {"d": 2, "f": "v"}], *truth)  # keys have features of their own
        assert model.steps == 2


def test_many_are_rejected_exactly_where_one_by_one_is_and_change_nothing() -> None:
    """Names that clash within one call, through another column; one of a key that is forgotten in between does not."""
    rng = random.Random(5)
    values = {"a": ["b", "b=c", 1.0, None], "a=b": ["c", 1.0, None], "a=b=c": [1.0, None], 3: ["c"], "3": ["c"]}
    rejected = 0
    for _ in range(400):
        rows = []
        for _ in range(rng.randint(2, 6)):
            names = rng.sample(list(values), rng.randint(1, 2))
            rows.append({"k": rng.randint(1, 3), **{name: rng.choice(values[name]) for name in names}})
        labels = [rng.choice(["x", "y"]) for _ in rows]
        rows.insert(1, {"k": rng.randint(1, 3), "d": 2.0})  # without a label it keeps no key from being forgotten
        labels.insert(1, None)
        model = PerKey(AROW(), key="k", max_keys=rng.choice([None, 1, 2]))
        model.learn_many([{"k": 1, "d": 1.0}], ["x"])
        before, one = model.to_bytes(), copy.deepcopy(model)
        wrong = None
        for i, (x, y) in enumerate(zip(rows, labels, strict=True)):
            try:
                one.learn_one(x, y)
            except FeatureNameError:
                wrong = i
                break
        if wrong is None:
            model.learn_many(rows, labels)
            assert model.to_bytes() == one.to_bytes()
            continue
        rejected += 1
        with pytest.raises(FeatureNameError, match=rf"^instance {wrong}: feature "):
            model.learn_many(rows, labels)
        assert model.to_bytes() == before
    assert 20 < rejected < 380


@pytest.mark.parametrize("framed", [False, True], ids=["dicts", "table"])
def test_labels_and_targets_may_be_columns_of_pyarrow(framed: bool) -> None:
    rows = [{"d": "u", "a": 1.0}, {"d": "v", "a": 2.0}, {"d": "u", "a": 3.0}]
    X = pa.Table.from_pylist(rows) if framed else rows
    for make, model, column in (
        (PerKey, "arow", ["p", "q", None]),
        (PerKeyRegressor, "arowregressor", [1.0, 2.0, None]),
    ):
        found, expected = make(model, "d"), make(model, "d")
        found.learn_many(X, pa.chunked_array([column]))
        expected.learn_many(rows, column)
        assert found.to_bytes() == expected.to_bytes()
