"""A bucket of keys without Spark: log, snapshots and live learners give what one process gives, whatever is lost."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

import varifold
from varifold.ask import AskPolicy
from varifold.ask.estimate import ErrorEstimator
from varifold.errors import ModelFileError, ParameterError
from varifold.evaluate.label_queue import LabelQueue
from varifold.spark.bucket import Bucket, Cache, Plan, Reader, Token, in_order
from varifold.spark.keyed import Detection, Keyed, Output
from varifold.spark.layout import Row


class Memory:
    """A bucket's state in memory; `calls` counts what would cross to the JVM."""

    def __init__(self) -> None:
        self.held: Token | None = None
        self.lines: list[tuple[int, str]] = []
        self.keys: dict[Any, bytes] = {}
        self.calls = 0

    def copy(self) -> Memory:
        other = Memory()
        other.held, other.lines, other.keys = self.held, list(self.lines), dict(self.keys)
        return other

    def token(self) -> Token | None:
        self.calls += 1
        return self.held

    def set_token(self, token: Token) -> None:
        self.calls += 1
        self.held = token

    def log(self) -> Iterator[str]:
        self.calls += 1
        return iter([text for _, text in sorted(self.lines)])

    def append(self, counter: int, text: str) -> None:
        self.calls += 1
        self.lines.append((counter, text))

    def clear_log(self) -> None:
        self.calls += 1
        self.lines = []

    def snapshot(self, key: Any) -> bytes | None:
        self.calls += 1
        return self.keys.get(key)

    def write(self, key: Any, data: bytes) -> None:
        self.calls += 1
        self.keys[key] = data


def plan(model: Any = None, **limits: int) -> Plan:
    return Plan(model or varifold.AROW(), **{"wait": 50, "buckets": 4, "logged": 3, "live": 100, **limits})


def rows_of(keys: int, n: int, seed: int = 1, late: float = 0.18) -> list[str]:
    """Rows of several keys; some labels come up to ten rows later."""
    rng = random.Random(seed)
    found: list[dict[str, Any]] = []
    for key in range(keys):
        rows: list[tuple[float, dict[str, Any]]] = []
        for t in range(n):
            x = {f"f{j}": rng.gauss(0, 1) for j in range(5) if rng.random() < 0.7}
            label = "yes" if sum(x.values()) > 0 else "no"
            row = {"k": f"device {key}", "i": t, "n": x, "s": {"mode": rng.choice(["on", "off", "a\u2028b"])}}
            if rng.random() < late:
                rows += [(t, row), (t + 0.5 + rng.randrange(10), {"k": row["k"], "i": t, "y": label})]
            else:
                rows.append((t, {**row, "y": label}))
        rows.sort(key=lambda pair: pair[0])
        found += [{**row, "o": place} for place, (_, row) in enumerate(rows)]
    found.sort(key=lambda row: row["o"])
    return [json.dumps(row, ensure_ascii=False) for row in found]


def lines_of(rows: Iterable[str | dict[str, Any]]) -> list[str]:
    """Rows as the expression of `varifold.spark.layout` writes them."""
    return [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]


def plain(rows: Sequence[str], model: Any = None, most: int = 50) -> list[Output]:
    """One process, one learner per key, a dict."""
    blank = model or varifold.AROW()
    learners: dict[Any, Any] = {}
    waiting: dict[Any, dict[str, Any]] = {}
    outputs = []
    for text in rows:
        row = json.loads(text)
        learner = learners.setdefault(row["k"], blank.clone())
        if "n" in row:
            x = {**row["n"], **row["s"]}
            shares = learner.predict_proba_one(x)
            label = learner.predict_one(x)
            outputs.append(Output(row["k"], row["i"], label, shares, learner.steps, "prediction", None))
            if "y" in row:
                learner.learn_one(x, row["y"])
            else:
                waiting[row["k"], row["i"]] = x
        else:
            learner.learn_one(waiting.pop((row["k"], row["i"])), row["y"])
    return outputs


def cuts(lines: Sequence[str], n: int, seed: int) -> list[list[str]]:
    """Micro-batches at random places, rows in any order within one."""
    rng = random.Random(seed)
    at = sorted(rng.sample(range(1, len(lines)), n - 1))
    parts = [list(lines[a:b]) for a, b in zip([0, *at], [*at, len(lines)], strict=True)]
    for part in parts:
        rng.shuffle(part)
    return parts


def by_place(outputs: Sequence[Any]) -> dict[tuple[Any, Any], Any]:
    found = {(a.key, a.id): a for a in outputs}
    assert len(found) == len(outputs)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("logged", [1, 3, 1000])
def test_no_value_depends_on_where_batches_are_cut_or_what_is_lost(logged: int, seed: int) -> None:
    lines = rows_of(6, 60, seed)
    rng = random.Random(seed)
    store, cache, outputs = Memory(), Cache(), []
    for part in cuts(lines, 25, seed):
        if rng.random() < 0.3:
            cache = Cache()  # another worker
        if rng.random() < 0.3:  # a task that dies before its state is committed; the worker lives on
            Bucket("q", 1, plan(logged=logged), store.copy(), cache).run(lines_of(part), lambda output: None)
        Bucket("q", 1, plan(logged=logged), store, cache).run(lines_of(part), outputs.append)
    assert by_place(outputs) == by_place(plain(lines))


def detections(rows: Sequence[str], blank: Any) -> list[Detection]:
    """One process, one detector per key, a dict; labels are not read."""
    learners: dict[Any, Any] = {}
    found = []
    for row in map(json.loads, rows):
        if "n" not in row:
            continue
        learner, x = learners.setdefault(row["k"], blank.clone()), {**row["n"], **row["s"]}
        p, steps = learner.p_value_one(x), learner.steps
        found.append(Detection(row["k"], row["i"], learner.score_one(x), p, p <= blank.rate, steps, "prediction", None))
        learner.learn_one(x)
    return found


@pytest.mark.parametrize("logged", [1, 1000])
def test_detectors_do_not_depend_on_where_batches_are_cut_or_what_is_lost(logged: int) -> None:
    lines, blank = rows_of(3, 60, 5), varifold.AutoDetector(rate=0.1)
    rng = random.Random(logged)
    store, cache = Memory(), Cache()
    found: list[Any] = []
    for part in cuts(lines, 12, 5):
        cache = Cache() if rng.random() < 0.4 else cache
        Bucket("q", 1, plan(blank, logged=logged), store, cache).run(lines_of(part), found.append)
    problems = [one for one in found if one.kind == "problem"]
    assert {one.problem for one in problems} == {"the row has no features"}  # the late labels
    assert by_place([one for one in found if one.kind == "prediction"]) == by_place(detections(lines, blank))
    assert any(one.anomaly for one in found)


def test_learners_that_live_cost_three_calls_per_batch() -> None:
    store, cache = Memory(), Cache()
    parts = cuts(rows_of(20, 30), 30, 1)
    seen: set[str] = set()
    for number, part in enumerate(parts):
        store.calls, new = 0, {json.loads(line)["k"] for line in part} - seen
        Bucket("q", 0, plan(logged=10_000), store, cache).run(lines_of(part), lambda output: None)
        assert store.calls == 3 + (len(new) if number else 0)  # a new key is looked for
        seen |= new
    store.calls = 0
    Bucket("q", 0, plan(logged=10_000), store, cache).run([], lambda output: None)
    assert store.calls == 2


def test_the_log_is_cleared_when_keys_are_written() -> None:
    store = Memory()
    sizes = []
    for part in cuts(rows_of(3, 100), 40, 2):
        Bucket("q", 0, plan(logged=5), store, Cache()).run(lines_of(part), lambda output: None)
        sizes.append(sum(text.count("\n") + 1 for _, text in store.lines))
    assert 0 in sizes
    assert max(sizes) <= 3 * 5 + 20
    assert len(store.keys) == 3


def test_a_worker_keeps_no_more_learners_than_it_may() -> None:
    cache, stores = Cache(), [Memory() for _ in range(5)]
    outputs: list[Output] = []
    lines = rows_of(4, 40)
    for part in cuts(lines, 10, 3):
        for number, store in enumerate(stores):
            emit = outputs.append if number == 0 else lambda output: None
            Bucket("q", number, plan(live=9), store, cache).run(lines_of(part), emit)
            assert sum(len(live.keys) for live in cache._buckets.values()) <= 9
    assert by_place(outputs) == by_place(plain(lines))


def test_problems_are_told_and_change_nothing() -> None:
    store, outputs = Memory(), []
    rows = [
        {"k": "a", "i": 1, "o": 1, "n": {"f": 1.0}, "y": "yes"},
        {"k": "a", "i": 2, "o": 2, "n": {"f": "Infinity"}, "y": "yes"},
        {"k": "a", "i": 3, "o": 3, "y": "no"},
        {"k": "a", "i": 4, "o": 4, "n": {"f": 1.0}},
        {"k": "a", "i": 4, "o": 5, "n": {"f": 2.0}},
        {"i": 5, "o": 6, "n": {"f": 1.0}},
        {"k": "b", "i": 6, "o": 9, "n": {"f": "NaN"}, "s": {"g": None}, "y": "no"},
        {"k": "a", "i": 7, "o": 7},
    ]
    Bucket("q", 0, plan(), store, Cache()).run(lines_of(rows), outputs.append)
    problems = {a.id: a.problem for a in outputs if a.kind == "problem"}
    assert "inf" in problems[2]
    assert problems[3] == "the row has a label, but no instance of its id waits"
    assert "the id 4 already waits for its label" in problems[4]
    assert problems[5] == "the row has no key"
    assert problems[7] == "the row has no label and no features"
    assert {a.id for a in outputs if a.kind == "prediction"} == {1, 4, 6}
    assert [a.steps for a in outputs if a.id == 7] == [1]


def test_rows_out_of_order_are_counted_and_reported() -> None:
    store, cache, outputs = Memory(), Cache(), []
    for order in (5, 3, 4, 6):
        row = {"k": "a", "i": order, "o": order, "n": {"f": 1.0}, "y": "yes"}
        Bucket("q", 0, plan(logged=100), store, cache).run(lines_of([row]), outputs.append)
    problems = [a.problem for a in outputs if a.kind == "problem"]
    assert problems == [f"out of order: {order} came after 5; it was processed on arrival" for order in (3, 4)]
    assert [a.steps for a in outputs if a.kind == "prediction"] == [0, 1, 2, 3]
    (live,) = cache._buckets.values()
    assert live.keys["a"].disordered == 2


def row_of(**fields: Any) -> Row:
    return Row.parse(json.dumps({"k": "a", **fields}))


def counts(learner: Any) -> dict[Any, float]:
    """Weight learned by label."""
    _, labels, arrays = learner._engine.dump()
    return dict(zip(labels, arrays["counts"].tolist(), strict=True))


def test_only_so_many_instances_wait() -> None:
    keyed, outputs = Keyed(varifold.AROW(), 2), []
    for number in range(4):
        keyed.process(row_of(i=number, n={"f": 1.0}), outputs.append)
    assert (list(keyed._numbers), len(keyed.waiting), keyed.waiting.expired) == ([2, 3], 2, 2)
    keyed.process(row_of(i=0, y="yes"), outputs.append)
    assert keyed.unknown == 1
    keyed.process(row_of(i=3, y="yes", w=2.0), outputs.append)
    assert counts(keyed.learner) == {"yes": 2.0}
    again = Keyed.from_bytes(keyed.to_bytes(), varifold.AROW(), 2)
    assert again.waiting.dump() == keyed.waiting.dump()
    assert (again._numbers, again.unknown) == (keyed._numbers, 1)


def test_a_late_label_has_the_weight_of_its_instance_unless_it_has_one() -> None:
    keyed = Keyed(varifold.AROW(), 5)
    for number in (1, 2):
        keyed.process(row_of(i=number, n={"f": 1.0}, w=0.5), lambda output: None)
    keyed.process(row_of(i=1, y="yes"), lambda output: None)
    keyed.process(row_of(i=2, y="no", w=3.0), lambda output: None)
    assert counts(keyed.learner) == {"yes": 0.5, "no": 3.0}


def test_instances_wait_in_the_librarys_queue() -> None:
    keyed, outputs = Keyed(varifold.AROW(), 5), []
    rows = [row_of(i=number, n={"f": number}, w=0.5) for number in (1, 2, 1)]
    for row in rows:
        keyed.process(row, outputs.append)
    assert isinstance(keyed.waiting, LabelQueue)
    assert [(held[0], held[2]) for held in keyed.waiting.dump()["waiting"]] == [(2, rows[1].line), (3, rows[2].line)]
    assert "already waits for its label" in str(outputs[-1].problem)


def test_another_number_of_buckets_or_another_model_is_rejected() -> None:
    store = Memory()
    Bucket("q", 0, plan(), store, Cache()).run(lines_of(rows_of(1, 5)), lambda output: None)
    with pytest.raises(ParameterError, match="written with buckets=4"):
        Bucket("q", 0, plan(buckets=8), store, Cache()).run([], lambda output: None)
    with pytest.raises(ParameterError, match=r"written with model=.*arow"):
        Bucket("q", 0, plan(varifold.PA()), store, Cache()).run([], lambda output: None)


def test_a_damaged_state_is_left_and_told_for_its_key_only() -> None:
    lines = rows_of(2, 20)
    store = Memory()
    Bucket("q", 0, plan(logged=1), store, Cache()).run(lines_of(lines[:20]), lambda output: None)
    damaged = store.keys["device 0"][:-1] + b"?"
    store.keys["device 0"] = damaged
    outputs: list[Output] = []
    for part in (lines[20:30], lines[30:]):
        Bucket("q", 0, plan(logged=1), store, Cache()).run(lines_of(part), outputs.append)
    kinds = {(a.key, a.kind) for a in outputs if "out of order" not in (a.problem or "")}
    assert kinds == {("device 0", "problem"), ("device 1", "prediction")}
    assert "digest does not match" in next(a.problem for a in outputs if a.key == "device 0")
    assert store.keys["device 0"] == damaged
    with pytest.raises(ModelFileError, match="key 'device 0'"):
        dict(Reader(plan(), store).learners(store.keys))


CLASSIFIERS = [name for name, cls in varifold.models.items() if issubclass(cls, varifold.VaryingClassifier)]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_states_continue_to_the_bit_and_are_model_files(name: str) -> None:
    from varifold.checks.material import learn, state, stream

    blank = varifold.models[name]()
    keyed = Keyed(learn(blank.clone(), stream(80, labels=("a", 2, True))), 10)
    keyed.last, keyed.disordered, keyed.unknown = 7, 1, 2
    data = keyed.to_bytes()
    again = Keyed.from_bytes(data, blank, 10)
    assert (again.last, again.disordered, again.unknown) == (7, 1, 2)
    assert state(again.learner) == state(keyed.learner) == state(varifold.from_bytes(data))
    assert again.to_bytes() == data
    for bad in (b"", data[:-3], data[:100], keyed.learner.to_bytes()):
        with pytest.raises((ModelFileError, KeyError)):
            Keyed.from_bytes(bad, blank, 10)
    with pytest.raises(ModelFileError, match="load it with the class"):
        Keyed.from_bytes(data, varifold.models["pa" if name == "arow" else "arow"](), 10)


def test_rows_without_an_order_stay_where_they_are() -> None:
    rows = [{"k": 1, "i": 1, "o": 2}, {"k": 2, "i": 2}, {"k": 1, "i": 3, "o": 1}, {"k": 2, "i": 4, "o": 0}]
    assert [row.id for row in in_order(map(Row.parse, lines_of(rows)))] == [3, 1, 2, 4]


def test_numbers_and_strings_of_a_row_become_one_dict() -> None:
    assert row_of(n={"f": 1.0}).x == row_of(n={"f": 1.0}, s={}).x == {"f": 1.0}
    assert row_of(n={}, s={"g": "on"}).x == {"g": "on"}
    assert row_of(n={}).x == row_of(s={}).x == {}
    assert row_of().x is None
    assert row_of(n={"f": 1.0}, s={"g": "NaN"}).x == {"f": 1.0, "g": "NaN"}
    assert row_of(n={"f": "-Infinity", "h": 2.0}, s={"g": "NaN"}).x == {"f": -math.inf, "h": 2.0, "g": "NaN"}


@pytest.mark.parametrize("name", ["arow", "gaussiannb", "auto"])
def test_one_call_gives_label_and_probabilities(name: str) -> None:
    from varifold.checks.material import learn, stream

    model = varifold.models[name]()
    assert model._engine.predict_with_proba_one({"f0": 1.0}) == (None, {})
    learn(model, stream(80, labels=("a", "b", "c")))
    for x, _ in stream(20, seed=2, labels=("a", "b", "c")):
        assert model._engine.predict_with_proba_one(x) == (model.predict_one(x), model.predict_proba_one(x))


def test_drawn_rows_estimate_the_error_that_requested_ones_exaggerate() -> None:
    """Weighted by the inverse of their chances, drawn rows have the error of all rows; requested ones have more."""
    true, plain, errors, estimates = [], [], [], []
    for seed in range(8):
        rng = random.Random(seed)
        state, truths = Memory(), {}
        lines = []
        for t in range(2500):
            value = rng.gauss(0.0, 1.0)
            truths["k", t] = "up" if value + rng.gauss(0.0, 0.5) > 0.0 else "down"
            known = {"y": truths["k", t]} if t < 100 else {}
            lines.append(json.dumps({"k": "k", "i": t, "o": t, "n": {"f": value}, "s": {}, **known}))
        outputs: list[Any] = []
        policy = AskPolicy(0.2, by="margin", explore=0.5, seed=seed)
        Bucket("q", 0, dataclasses.replace(plan(), ask=policy), state, Cache()).run(lines, outputs.append)
        waiting = [one for one in outputs if one.ask is not None]
        assert all(one.ask for one in waiting if one.drawn)
        wrong = {one.id: one.label != truths["k", one.id] for one in waiting}
        drawn = [one for one in waiting if one.drawn]
        requested = [one.id for one in waiting if one.ask]
        true.append(sum(wrong.values()) / len(waiting))
        outcomes = ErrorEstimator()
        for one in drawn:
            outcomes.add(not wrong[one.id], one.drawn)
        estimates.append(outcomes.estimate())
        weighted = sum(wrong[one.id] / one.drawn for one in drawn) / sum(1 / one.drawn for one in drawn)
        assert estimates[-1].error == pytest.approx(weighted)
        errors.append(weighted - true[-1])
        plain.append(sum(wrong[i] for i in requested) / len(requested))
    assert sum(plain) > 1.3 * sum(true)
    assert abs(sum(errors)) < 3.0 * math.sqrt(sum(one.standard_error**2 for one in estimates))


def test_waiting_rows_say_whether_their_label_is_worth_it() -> None:
    """Every key has a policy of its own, whose state survives snapshots, logs and workers that are gone."""
    policy = AskPolicy(0.02, by="mixed")
    lines = [
        json.dumps({"k": key, "i": t, "o": t, "n": {"f": float(t % 7)}, "s": {}, **({"y": "up"} if t % 5 == 0 else {})})
        for key in ("a", "b")
        for t in range(120)
    ]
    expected = {}
    for key in ("a", "b"):
        learner, own = varifold.AROW(), policy.clone()
        for t in range(120):
            x = {"f": float(t % 7)}
            if t % 5 == 0:
                expected[key, t] = None
                learner.learn_one(x, "up")
            else:
                expected[key, t] = own.decide(x, learner.predict_proba_one(x)).ask
    assert {False, True, None} == set(expected.values())
    state, outputs = Memory(), []
    for start in range(0, 120, 17):
        part = [line for line in lines if start <= json.loads(line)["i"] < start + 17]
        Bucket("q", 0, dataclasses.replace(plan(), ask=policy), state, Cache()).run(part, outputs.append)
    assert {(one.key, one.id): one.ask for one in outputs} == expected
    with pytest.raises(ParameterError, match="the checkpoint was written with model"):
        Bucket("q", 0, plan(), state, Cache()).run([], outputs.append)
