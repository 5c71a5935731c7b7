"""Run in an environment that holds the core's own dependencies only: what must work without any extra."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXTRAS = (
    "rich",
    "pooch",
    "polars",
    "pyarrow",
    "sklearn",
    "zstandard",
    "matplotlib",
    "joblib",
    "scikit_posthocs",
    "orjson",
    "uvicorn",
    "mlflow",
)


def learner_round_trip(folder: Path) -> None:
    import varifold

    for name, cls in varifold.models.items():
        model = cls()
        for step in range(60):
            model.learn_one({"pressure": step % 2, f"part {step % 5}": 1.0, "valve": "open"}, bool(step % 2))
        model.save(folder / name)
        again = varifold.load(folder / name)
        assert again.to_bytes() == model.to_bytes(), name
        x = {"pressure": 1.0, "unknown": 3.0}
        assert again.predict_one(x) == model.predict_one(x), name


def command(*words: str, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "varifold", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"varifold {' '.join(words)} failed: {done.stderr}"
    return done


def command_line(folder: Path) -> None:
    with (folder / "readings.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["pressure", "valve", "state"])
        rows.writerows([t % 7 if t % 3 else "", "open" if t % 2 else "shut", t % 2] for t in range(200))
    assert "olvf" in command("models", folder=folder).stdout
    run = ("run", "readings.csv", "--target", "state", "--model", "arow")
    saved = command(*run, "--format", "json", "--save", "plant.model", folder=folder)
    assert saved.stderr == "learner written to plant.model\n"
    result = json.loads(saved.stdout)
    assert result["instances"] == 200
    assert result["cer"]["mean"] < 0.3
    assert "pressure" in command("inspect", "plant.model", folder=folder).stdout
    assert "pip install '.[bench]'" in command(*run, "--repeats", "2", "--jobs", "2", folder=folder, code=1).stderr
    demo = command("demo", "--model", "arow", folder=folder)
    assert "zeros filled in" in demo.stdout
    assert "pip install '.[plot]'" in demo.stderr


def sub_packages() -> None:
    import varifold

    for found in pkgutil.walk_packages(varifold.__path__, "varifold."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    message = "a picture was drawn without matplotlib"
    try:
        importlib.import_module("varifold.report.copula").plot_correlation(["a"], [[1.0]], "a.png")
    except varifold.errors.MissingExtraError as error:
        message = str(error)
    assert ".[plot]" in message, message


def main() -> None:
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"extras are installed here, so this proves nothing: {present}"
    with tempfile.TemporaryDirectory() as folder:
        learner_round_trip(Path(folder))
        command_line(Path(folder))
    sub_packages()
    print("the core runs without extras")


if __name__ == "__main__":
    sys.exit(main())
