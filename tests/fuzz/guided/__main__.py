"""Fuzz one way in with atheris, which follows the coverage of the Python code: `python -m tests.fuzz.guided csv 60`.

The corpus grows in the folder given third (.venv/guided by default); an input that fails is written to it as crash-....
Compiled modules are run but not followed: what they do with an input is found by the sanitizers (`make sanitize`).
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["varifold"], enable_loader_override=False):
    from tests.fuzz.guided.harnesses import HARNESSES, LARGEST
    from varifold.errors import VarifoldWarning


def main() -> None:
    warnings.simplefilter("ignore", VarifoldWarning)
    name, seconds = sys.argv[1], int(sys.argv[2])
    corpus = Path(sys.argv[3] if len(sys.argv) > 3 else ".venv/guided") / name
    corpus.mkdir(parents=True, exist_ok=True)
    harness, seeds = HARNESSES[name]
    for seed in seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    options = [
        f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=30", "-rss_limit_mb=3000",
        "-print_final_stats=1", f"-artifact_prefix={corpus}/",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], harness)
    atheris.Fuzz()


main()
