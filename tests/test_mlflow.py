"""The MLflow flavour: learners logged as their own files, answering for columns that they have never seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest

import varifold
import varifold.mlflow
from varifold.errors import ModelFileError, ParameterError

FRAME = pd.DataFrame({"load": [0.0, 1.0], "never seen": ["z", None]})


def learner() -> Any:
    found = varifold.OLVF()
    for step in range(100):
        found.learn_one({"load": step % 2, "fan": "on"}, "fault" if step % 2 else "ok")
    return found


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")


@pytest.mark.filterwarnings("ignore")  # MLflow's own
@pytest.mark.usefixtures("tracking")
def test_a_logged_learner_predicts_as_pyfunc_and_continues_when_loaded() -> None:
    model = learner()
    with mlflow.start_run():
        info = varifold.mlflow.log_model(model, name="pump", metadata={"plant": "north"})
    assert info.signature is None
    again = varifold.mlflow.load_model(info.model_uri)
    assert again.to_bytes() == model.to_bytes()
    answering = mlflow.pyfunc.load_model(info.model_uri)
    assert answering.metadata.metadata == {"plant": "north"}
    assert answering.predict(FRAME).tolist() == ["ok", "fault"]
    config = {"output": "probabilities"}
    shares = mlflow.pyfunc.load_model(info.model_uri, model_config=config).predict(FRAME)
    assert shares.equals(model.predict_proba_many(FRAME))
    assert answering.get_raw_model().steps == 100


@pytest.mark.filterwarnings("ignore")
def test_one_learner_per_key_is_saved_too(tmp_path: Path) -> None:
    model = varifold.PerKey("arow", key="device")
    for step in range(20):
        model.learn_one({"device": "ab"[step % 2], "load": step % 3}, step % 2)
    varifold.mlflow.save_model(model, tmp_path / "m", output="probabilities", pip_requirements=["varifold"])
    assert (tmp_path / "m" / "requirements.txt").read_text().split()[-1] == "varifold"
    assert varifold.mlflow.load_model(str(tmp_path / "m")).to_bytes() == model.to_bytes()


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_saved_or_loaded_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"Got a dict.*mlflow\.sklearn"):
        varifold.mlflow.save_model({}, tmp_path / "m")
    with pytest.raises(ParameterError, match="'output' parameter must be one of labels, probabilities"):
        varifold.mlflow.save_model(learner(), tmp_path / "m", output="both")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelFileError, match=r"no data/model\.varifold"):
        varifold.mlflow.load_model(str(tmp_path / "empty"))
    assert not (tmp_path / "m").exists()
