"""Time an instance of the copula's peers, on the rows that ``copula_tables.py speed --save DIR`` wrote.

    python benchmarks/speed/copula_peers.py openmoa DIR
    python benchmarks/speed/copula_peers.py gcimpute DIR

Run it with a Python that has the peer; varifold is not needed. Window 200, batch 20, one pass: openmoa's OVFM predicts
and trains on each row, gcimpute's online mode fits and fills the rows. Processor time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np


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
    from gcimpute.gaussian_copula import GaussianCopula

    copula = GaussianCopula(training_mode="minibatch-online", window_size=200, batch_size=20, const_stepsize=0.5)
    start = time.process_time()
    copula.fit_transform(x, n_train=200)
    return time.process_time() - start


def main() -> None:
    peer, folder = sys.argv[1:]
    for path in sorted(Path(folder).glob("speed-*.npz")):
        held = np.load(path)
        seconds = {"openmoa": openmoa, "gcimpute": gcimpute}[peer](held["x"], held["y"])
        print(f"{path.stem[6:]:10}{peer:10}{1e3 * seconds / len(held['y']):8.3f} ms an instance", flush=True)


if __name__ == "__main__":
    main()
