"""Write a prepared file and compare it with the registry."""

from __future__ import annotations

import argparse
import gzip
import hashlib
from pathlib import Path
from typing import Any

from varifold import datasets


def arguments(what: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("originals", type=Path, help="folder of the publisher's files")
    parser.add_argument("folder", type=Path, help="data folder (VARIFOLD_DATA); the file is written to its natural/")
    return parser.parse_args()


def write(frame: Any, name: str, folder: Path) -> None:
    """Write a pandas frame as the file of a registered set; report whether its content is that of the registry."""
    file = datasets.find(name).files[0]
    content = frame.to_csv(index=False, lineterminator="\n").encode()
    place = folder / file.path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(gzip.compress(content, 9, mtime=0))
    same = hashlib.sha256(content).hexdigest() == file.sha256
    verdict = "as registered" if same else "another edition than the registered one, which `load` will reject"
    print(f"{place}: {len(frame):,} rows x {len(frame.columns)} columns, {verdict}")
