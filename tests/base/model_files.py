"""Model files kept for ever: one per method, written once by the build that introduced it.

``python -m tests.base.model_files NAME ...`` writes the file of a new method and what it answers afterwards.
A file that is there is never written again: it stands for the learners that users have on disk.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import varifold
from varifold.checks.material import is_regressor

FOLDER = Path(__file__).parents[1] / "data" / "models"
BEFORE, AFTER = 80, 60
FORMS: dict[str, dict[str, Any]] = {
    "olvf-sparse": {"method": "olvf", "B": 0.5},
    "olsf-sparse": {"method": "olsf", "B": 0.3},
    "arow-full": {"method": "arow", "covariance": "full"},
    "orf3v-pairs": {"method": "orf3v", "pairs": 3},
    "auto-fast": {"method": "auto", "budget": "fast"},
    "auto-young": {"method": "auto"},
    "autoregressor-young": {"method": "autoregressor"},
    "ovfiv-bounded": {"method": "ovfiv", "max_features": 6},
    "arow-bounded": {"method": "arow", "max_features": 5, "evict": "lightest"},
    "ovfm-minmax": {"method": "ovfm", "scale": "minmax"},
    "arowregressor-full": {"method": "arowregressor", "covariance": "full"},
    "olvfregressor-sparse": {"method": "olvfregressor", "B": 0.5},
}


def stream(count: int, seed: int = 5) -> Iterator[tuple[dict[Any, Any], str]]:
    """Numbers, strings, an int name, absences, a feature that comes late, one that vanishes, a late third label."""
    rng = random.Random(seed)
    for step in range(count):
        y = rng.choice(["a", "b"] if step < 30 else ["a", "b", "c"])
        shift = {"a": -1.0, "b": 1.0, "c": 3.0}[y]
        x: dict[Any, Any] = {"t": rng.gauss(shift, 1.0), "p": rng.gauss(0.0, 2.0) * shift, 7: rng.random()}
        x["state"] = rng.choice(["on", "off", y])
        if step > 40:
            x["late"] = rng.gauss(-shift, 0.5)
        if step < 50:
            x["early"] = rng.gauss(shift, 2.0)
        yield {name: value for name, value in x.items() if rng.random() > 0.3}, y


def target(model: Any, x: dict[Any, Any], y: str) -> Any:
    """The label, or a number that depends on it and on a value for a regressor."""
    return {"a": -10.0, "b": 4.0, "c": 25.0}[y] + x.get("p", 0.0) if is_regressor(model) else y


def made(form: str) -> Any:
    """A new learner of a method, or of one of its FORMS."""
    params = dict(FORMS.get(form, {"method": form}))
    return varifold.models[params.pop("method")](**params)


def answers(model: Any) -> list[dict[str, float]]:
    """Probabilities (or numbers) for the rest of the stream, each predicted and then learned."""
    found = []
    for x, y in list(stream(BEFORE + AFTER))[BEFORE:]:
        shares = {"": model.predict_one(x)} if is_regressor(model) else model.predict_proba_one(x)
        found.append({str(label): p for label, p in shares.items()})
        model.learn_one(x, target(model, x, y))
    return found


def write(form: str) -> None:
    """Learn the first part, save, go on and note the answers."""
    model = made(form)
    for x, y in stream(BEFORE):
        model.learn_one(x, target(model, x, y))
    model.save(FOLDER / f"{form}.safetensors")
    (FOLDER / f"{form}.json").write_text(json.dumps(answers(model)) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if (FOLDER / f"{name}.safetensors").exists():
            sys.exit(f"{name} has a file already; it is kept for ever")
        write(name)
