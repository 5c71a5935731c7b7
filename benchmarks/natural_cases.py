"""Run the case studies of the site and keep what they print and draw; they need the natural streams.

    python -m benchmarks.natural_cases [NAME ...]     # docs/cases/NAME.txt and docs/_static/natural/case-NAME.png

The site shows the script, its kept output and its picture, so that it can be built without the data.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CASES = ROOT / "docs" / "cases"
PICTURES = ROOT / "docs" / "_static" / "natural"


def run(name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(CASES / f"{name}.py"), str(PICTURES / f"case-{name}.png")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}:\n{done.stderr}")
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
    (CASES / f"{name}.txt").write_text(done.stdout.rstrip() + f", commit {commit}\n", encoding="utf-8")


def main() -> None:
    names = sys.argv[1:] or sorted(path.stem for path in CASES.glob("*.py"))
    for name in names:
        run(name)
        print((CASES / f"{name}.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
