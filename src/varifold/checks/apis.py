"""Checks of the API for many instances, and of files, bytes, pickles and copies."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from varifold.base import to_block
from varifold.base.learner import is_regressor
from varifold.checks.material import assert_finite, assert_same, learn, stream_of

NUMERIC = ["f0", "f1", "f2", "f3"]


def check_many_is_one(learner: Any) -> None:
    """`learn_many`, in batches of any size, leaves the state of `learn_one` to the last bit."""
    pairs = stream_of(learner, 150, labels=("a", "b", "c"))
    one = learn(learner.clone(), pairs)
    for size in (150, 37, 1):
        many = learner.clone()
        for lo in range(0, len(pairs), size):
            part = pairs[lo : lo + size]
            many.learn_many([x for x, _ in part], [y for _, y in part])
        assert_same(one, many, pairs, f"learn_many in batches of {size}")


def check_predict_many(learner: Any) -> None:
    """`predict_many` and `predict_proba_many` equal `predict_one` and `predict_proba_one`, also before any label."""
    more = () if is_regressor(learner) else ("predict_proba",)
    pairs = stream_of(learner, 60, labels=("a", "b", "c"))
    rows = [x for x, _ in stream_of(learner, 30, seed=2)] + [{}, {"unknown": 1.0}]
    model = learner.clone()
    for _ in range(2):
        for call in ("predict", *more):
            for x, many in zip(rows, getattr(model, f"{call}_many")(rows), strict=True):
                single = getattr(model, f"{call}_one")(x)
                assert many == single, f"{call}_many returned {many!r} where {call}_one({x}) returns {single!r}"
        learn(model, pairs)


def check_blocks(learner: Any) -> None:
    """Slices of a weighted block through `predict_learn_many`, alternating with single instances, equal one by one."""
    pairs = stream_of(learner, 120)
    weights = [(0.0, 0.5, 1.0, 2.0)[t % 4] for t in range(120)]
    one, many = learner.clone(), learner.clone()
    block = to_block([x for x, _ in pairs], [y for _, y in pairs], weights, numeric=is_regressor(learner))
    expected, predicted = [], []
    for t, (x, y) in enumerate(pairs):
        expected.append(one.predict_one(x))
        one.learn_one(x, y, w=weights[t])
    for lo in range(0, 120, 40):
        predicted += many.predict_learn_many(block[lo : lo + 20])
        for t in range(lo + 20, lo + 40):
            predicted.append(many.predict_one(pairs[t][0]))
            many.learn_one(*pairs[t], w=weights[t])
    assert predicted == expected, "predict_learn_many and predict_one differ"
    assert_same(one, many, pairs, "alternating blocks and dicts")


def check_schedule(learner: Any) -> None:
    """`run_block` with a schedule equals `predict_one` and `learn_one` in that order."""
    pairs = stream_of(learner, 60)
    # each label is learned ten instances after its prediction
    plan = [s for t in range(70) for s in ([t + 1] if t < 60 else []) + ([-(t - 9)] if t >= 10 else [])]
    one, many = learner.clone(), learner.clone()
    block = to_block([x for x, _ in pairs], [y for _, y in pairs], numeric=is_regressor(learner))
    outputs = many.run_block(block, np.array(plan))
    expected = []
    for s in plan:
        if s > 0:
            expected.append(one.predict_one(pairs[s - 1][0]))
        else:
            one.learn_one(*pairs[-s - 1])
    labels = () if is_regressor(learner) else [*many.classes, None]
    predicted = [labels[c] for c in outputs[0]] if labels else outputs.tolist()
    assert predicted == expected, "run_block with a schedule and predict_one in that order differ"
    assert_same(one, many, pairs, "a schedule")


def check_memos(learner: Any) -> None:
    """A memo that is used at once changes nothing; late ones do the same through `run_block` and `learn_one`."""
    pairs = stream_of(learner, 60)
    plain, at_once, one, many = (learner.clone() for _ in range(4))
    for x, y in pairs:
        plain.learn_one(x, y)
        at_once.learn_one(x, y, memo=at_once.memo_one(x))
    assert_same(plain, at_once, pairs, "a memo that is used at once")
    plan = [s for t in range(70) for s in ([t + 1] if t < 60 else []) + ([-(t - 9)] if t >= 10 else [])]
    block = to_block([x for x, _ in pairs], [y for _, y in pairs], numeric=is_regressor(learner))
    many.run_block(block, np.array(plan), [None] * len(pairs))
    memos: dict[int, bytes] = {}
    for s in plan:
        if s > 0:
            memos[s] = one.memo_one(pairs[s - 1][0])
        else:
            one.learn_one(*pairs[-s - 1], memo=memos[-s])
    assert_same(one, many, pairs, "a schedule with memos")


def check_unlabelled(learner: Any) -> None:
    """Instances without a label are learned or ignored as `traits.unlabelled` states, by every way to learn them."""
    pairs = stream_of(learner, 150, labels=("a", "b", "c"))
    missing = (None, float("nan"))
    few = [(x, y if t % 4 == 3 else missing[t % 2]) for t, (x, y) in enumerate(pairs)]
    if learner.traits.unlabelled == "ignored":
        labelled = learn(learner.clone(), [pair for t, pair in enumerate(pairs) if t % 4 == 3])
        assert_same(labelled, learn(learner.clone(), few), pairs, "instances without a label")
        return
    one, many, planned = learn(learner.clone(), few), learner.clone(), learner.clone()
    for lo in range(0, len(few), 37):
        many.learn_many([x for x, _ in few[lo : lo + 37]], [y for _, y in few[lo : lo + 37]])
    assert_same(one, many, pairs, "learn_many with instances without a label")
    block = to_block([x for x, _ in pairs], [y for _, y in pairs], numeric=is_regressor(learner))
    planned.run_block(block, np.array([-(t + 1) if t % 4 == 3 else -(len(pairs) + t + 1) for t in range(len(pairs))]))
    assert_same(one, planned, pairs, "a schedule that withholds labels")
    again = pickle.loads(pickle.dumps(one))
    assert_same(learn(one, few), learn(again, few), pairs, "instances without a label after a pickle")
    assert_finite(one)


def check_frames(learner: Any) -> None:
    """Arrays, sparse matrices and every kind of data frame leave the same state as dicts."""
    pairs = [({k: v for k, v in x.items() if k in NUMERIC}, y) for x, y in stream_of(learner, 60, numeric=True)]
    y = [label for _, label in pairs]
    plain = learn(learner.clone(), pairs)
    for kind, table in _tables([x for x, _ in pairs]).items():
        model = learner.clone()
        if kind in ("array", "CSR"):
            model.learn_many(to_block(table, y, names=NUMERIC, numeric=is_regressor(learner)))
        else:
            model.learn_many(table, y)
        assert_same(plain, model, pairs, kind)


def _tables(rows: list[dict[str, float]]) -> dict[str, Any]:
    import pandas as pd
    from scipy import sparse

    full = pd.DataFrame(rows, columns=NUMERIC)
    dense = full.to_numpy()
    cells = [(i, NUMERIC.index(k), v) for i, x in enumerate(rows) for k, v in x.items()]
    i, j, v = (np.array(part) for part in zip(*cells, strict=True))
    tables: dict[str, Any] = {
        "pandas": full,
        "pandas, columns reversed": full[NUMERIC[::-1]],
        "array": dense,
        "CSR": sparse.csr_array((v, (i, j)), shape=dense.shape),
    }
    if importlib.util.find_spec("polars"):
        tables["polars"] = importlib.import_module("polars").DataFrame(rows, schema=dict.fromkeys(NUMERIC, float))
    if importlib.util.find_spec("pyarrow"):
        tables["pyarrow"] = importlib.import_module("pyarrow").Table.from_pylist(
            [{k: x.get(k) for k in NUMERIC} for x in rows]
        )
    return tables


def check_changing_columns(learner: Any) -> None:
    """Data frames whose columns change from one to the next, with strings, leave the same state as dicts."""
    import pandas as pd

    pairs = stream_of(learner, 120)
    model = learner.clone()
    for lo in range(0, 120, 24):
        part = pairs[lo : lo + 24]
        model.learn_many(pd.DataFrame([x for x, _ in part]), [y for _, y in part])
    assert_same(learn(learner.clone(), pairs), model, pairs, "frames with changing columns")


def check_copies(learner: Any) -> None:
    """Pickles and deep copies continue to the last bit for 200 steps; clones keep the parameters and no state."""
    pairs = stream_of(learner, 260, labels=("a", "b", "c"))
    model = learn(learner.clone(), pairs[:60])
    twins = {"pickle": pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy(model)}
    for twin in twins.values():
        learn(twin, pairs[60:])
    learn(model, pairs[60:])
    for how, twin in twins.items():
        assert_same(model, twin, pairs[:40], f"after {how}")
    unlearned = 0.0 if is_regressor(learner) else None
    assert model.clone().predict_one(pairs[0][0]) == unlearned, "a clone must have learned nothing"
    assert model.clone()._get_params() == model._get_params(), "a clone must keep the parameters"


def check_saved(learner: Any) -> None:
    """Saved and loaded, it continues to the last bit for 200 steps."""
    pairs = stream_of(learner, 260, labels=("a", "b", "c"))
    model = learn(learner.clone(), pairs[:60])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model without suffix"
        model.save(path)
        assert [p.name for p in Path(folder).iterdir()] == [path.name], "save must write just the path given"
        again = model.load(path)
    assert again._get_params() == model._get_params(), "save and load changed the parameters"
    learn(model, pairs[60:])
    learn(again, pairs[60:])
    assert_same(model, again, pairs[:40], "after save and load")


def check_bytes(learner: Any) -> None:
    """`to_bytes` returns the same bytes for the same state; from them it continues to the last bit for 200 steps."""
    pairs = stream_of(learner, 260, labels=("a", "b", "c"))
    model = learn(learner.clone(), pairs[:60])
    data = model.to_bytes()
    assert model.to_bytes() == data, "two calls of to_bytes differ"
    again = model.from_bytes(data)
    assert again.to_bytes() == data, "to_bytes after from_bytes differs"
    learn(model, pairs[60:])
    learn(again, pairs[60:])
    assert_same(model, again, pairs[:40], "after to_bytes and from_bytes")
