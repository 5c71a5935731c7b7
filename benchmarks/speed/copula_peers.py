"""Run the copula's peers on the tables that ``copula_tables.py`` wrote: time per instance, and imputed values.

    python benchmarks/speed/copula_peers.py speed openmoa|gcimpute DIR
    python benchmarks/speed/copula_peers.py fill gcimpute DIR

``copula_tables.py speed`` and ``imputation`` call it with ``--peer NAME=PYTHON``, an interpreter that has the peer;
varifold is not needed. Window 200, batch 20, one pass: openmoa's OVFM predicts and trains on each row, gcimpute's
online mode fits and fills the rows. Processor time, as JSON. The first thousand rows of ``speed-*.npz`` are timed,
those of ``fill-*.npz`` filled, by gcimpute with its constant and with its decaying step.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

STEPS = {"gcimpute": 0.5, "gcimpute, decaying step": None}


def openmoa(x: np.ndarray, y: np.ndarray) -> float:
    from openmoa.classifier._ovfm_classifier import OVFMClassifier
    from openmoa.stream import Schema

    names = [*(f"x{j}" for j in range(x.shape[1])), "y"]
    schema = Schema.from_custom(names, values_for_class_label=["0", "1"], target_attribute_name="y")
    learner = OVFMClassifier(schema, window_size=200, batch_size=20)
    rows = [SimpleNamespace(x=row, y_index=int(label)) for row, label in zip(x, y, strict=True)]
    start = time.process_time()
    for row in rows:
        learner.predict(row)
        learner.train(row)
    return time.process_time() - start


def gcimpute(x: np.ndarray, _: np.ndarray) -> float:
    start = time.process_time()
    filled(x, 0.5)
    return time.process_time() - start


def filled(x: np.ndarray, step: float | None) -> np.ndarray:
    from gcimpute.gaussian_copula import GaussianCopula

    copula = GaussianCopula(
        training_mode="minibatch-online", window_size=200, batch_size=20, const_stepsize=step, random_state=0
    )
    return copula.fit_transform(x, n_train=200)


def main() -> None:
    what, peer, folder = sys.argv[1:]
    found = {}
    for path in sorted(Path(folder).glob(f"{what}-*.npz")):
        held = np.load(path)
        name = path.stem.split("-", 1)[1]
        if what == "speed":
            x, y = held["x"][:1000], held["y"][:1000]
            try:
                found[name] = 1e3 * {"openmoa": openmoa, "gcimpute": gcimpute}[peer](x, y) / len(y)
            except ValueError:  # gcimpute fails on a window that holds a single value (spambase)
                found[name] = None
        else:
            ways = {way: filled(held["x"], step) for way, step in STEPS.items()}
            np.savez(Path(folder) / f"filled-{name}.npz", **ways)
            found[name] = list(ways)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
