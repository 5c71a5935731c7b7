"""Model files kept for ever: one per registered method, and what each predicts afterwards.

``python -m tests.base.kept_files`` writes all of them again with the present build. From 1.0 on a file that is there
stands for the learners that users have on disk: then only the files of new methods are written, by their names.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import varifold
from varifold.base.learner import is_detector
from varifold.base.registry import composites, transformers
from varifold.checks.material import is_regressor

FOLDER = Path(__file__).parents[1] / "data" / "models"
BEFORE, AFTER = 40, 20
"""Instances learned before the file is written, and predicted and learned afterwards."""
KINDS = sorted([*varifold.models, *varifold.detectors, *transformers, *composites])


def stream(count: int, seed: int = 5) -> Iterator[tuple[dict[Any, Any], str]]:
    """Numbers, strings, an int name, absences, a feature that comes late, one that vanishes, a late third label."""
    rng = random.Random(seed)
    for step in range(count):
        y = rng.choice(["a", "b"] if step < 15 else ["a", "b", "c"])
        shift = {"a": -1.0, "b": 1.0, "c": 3.0}[y]
        x: dict[Any, Any] = {"t": rng.gauss(shift, 1.0), "p": rng.gauss(0.0, 2.0) * shift, 7: rng.random()}
        x["state"] = rng.choice(["on", "off", y])
        if step > 20:
            x["late"] = rng.gauss(-shift, 0.5)
        if step < 25:
            x["early"] = rng.gauss(shift, 2.0)
        yield {name: value for name, value in x.items() if rng.random() > 0.3}, y


def make(kind: str) -> Any:
    """Make a new object of a registered method, or of AROW by key or voting."""
    if kind == "vote":
        return varifold.Vote([varifold.AROW(), varifold.GaussianNB()])
    if kind == "votedetector":
        return varifold.VoteDetector([varifold.TailDetector(), varifold.PresenceDetector()])
    if kind in composites:
        models = {"perkey": "arow", "perkeydetector": "taildetector", "perkeyregressor": "arowregressor"}
        return composites[kind](models[kind], key="key", most=1)
    return next(known for known in (varifold.models, varifold.detectors, transformers) if kind in known)[kind]()


def instances(kind: str, model: Any) -> list[tuple[dict[Any, Any], Any]]:
    """Return the stream as this object takes it: with a key, or with numbers to predict."""
    rows: list[tuple[dict[Any, Any], Any]] = []
    for i, (x, y) in enumerate(stream(BEFORE + AFTER)):
        x = {**x, "key": f"k{i % 2}"} if kind.startswith("perkey") else x
        rows.append((x, {"a": -10.0, "b": 4.0, "c": 25.0}[y] + x.get("p", 0.0) if is_regressor(model) else y))
    return rows


def learn(kind: str, model: Any, x: dict[Any, Any], y: Any) -> None:
    """Learn one instance."""
    if kind in transformers or is_detector(model):
        model.learn_one(x)
    else:
        model.learn_one(x, y)


def predictions(kind: str, model: Any) -> list[dict[str, Any]]:
    """Predict and learn the rest of the stream; probabilities, numbers or imputed values of each instance."""
    predicted = []
    for x, y in instances(kind, model)[BEFORE:]:
        if kind in transformers:
            row = model.transform_one(x)
        elif is_detector(model):
            row = {"score": model.score_one(x), "p": model.p_value_one(x)}
        else:
            row = {"": model.predict_one(x)} if is_regressor(model) else model.predict_proba_one(x)
        predicted.append({str(label): value for label, value in row.items()})
        learn(kind, model, x, y)
    return predicted


def write(kind: str) -> None:
    """Learn the first part of the stream, save, continue and write the predictions."""
    model = make(kind)
    for x, y in instances(kind, model)[:BEFORE]:
        learn(kind, model, x, y)
    FOLDER.mkdir(exist_ok=True)
    model.save(FOLDER / f"{kind}.safetensors")
    (FOLDER / f"{kind}.json").write_text(json.dumps(predictions(kind, model)) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or KINDS:
        write(name)
