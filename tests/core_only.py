"""Run in an environment that holds the core's own dependencies only: what must work without any extra."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

EXTRAS = ("rich", "pooch", "polars", "pyarrow", "sklearn", "zstandard", "matplotlib", "joblib", "scikit_posthocs")


def learner_round_trip(folder: Path) -> None:
    import varifold

    for name, cls in varifold.models.items():
        model = cls()
        for step in range(60):
            model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0, "valve": "open"}, bool(step % 2))
        model.save(folder / name)
        again = varifold.load(folder / name)
        x = {"pressure": 1.0, "unheard of": 3.0}
        assert again.predict_proba_one(x) == model.predict_proba_one(x), name


def main() -> None:
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"extras are installed here, so this proves nothing: {present}"
    with tempfile.TemporaryDirectory() as folder:
        learner_round_trip(Path(folder))
    print("the core runs without extras")


if __name__ == "__main__":
    sys.exit(main())
