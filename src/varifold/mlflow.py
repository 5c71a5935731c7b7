"""MLflow flavour: log learners as their own model files and serve them as pyfunc, without a column signature.

A signature would reject or drop columns that the learner had not seen when it was saved, and accepting new columns is
its purpose. So `input_example` and `signature` are not offered. Needs the extra ``mlflow`` (mlflow-skinny is enough).

>>> import mlflow, varifold.mlflow                                                      # doctest: +SKIP
>>> info = varifold.mlflow.log_model(learner, name="pump")                              # doctest: +SKIP
>>> varifold.mlflow.load_model(info.model_uri).learn_one({"load": 0.7}, "ok")           # doctest: +SKIP
>>> mlflow.pyfunc.load_model(info.model_uri).predict(frame)                             # doctest: +SKIP
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from varifold._version import __version__
from varifold.base import load
from varifold.errors import ModelFileError, ParameterError, missing_extra

__all__ = ["FLAVOR_NAME", "load_model", "log_model", "save_model"]

FLAVOR_NAME = "varifold"
_FILE = "model.varifold"
_OUTPUTS = ("labels", "probabilities")


def save_model(
    learner: Any,
    path: str | os.PathLike[str],
    *,
    output: str = "labels",
    pip_requirements: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Write a folder that MLflow can load as a model.

    Parameters
    ----------
    learner
        A learner of this library, or a `PerKey`.
    path
        The folder, which must be empty or not exist.
    output
        Output of pyfunc's `predict`: ``"labels"`` or ``"probabilities"`` (one column per label). Can be overridden on
        loading: ``mlflow.pyfunc.load_model(uri, model_config={"output": "probabilities"})``.
    pip_requirements
        Packages that MLflow installs before it serves the model; this version of varifold by default.
    metadata
        Stored with the model.
    mlflow_model
        The MLflow model to add to; `log_model` passes it.

    """
    pyfunc, model_class = _mlflow()
    _checked_output(output)
    if not callable(getattr(learner, "to_bytes", None)):
        raise ParameterError(
            f"save_model and log_model take a learner of varifold. Got a {type(learner).__name__} instead; "
            "an estimator of varifold.sklearn is logged by mlflow.sklearn, its learner (model_) by this module"
        )
    description = model_class() if mlflow_model is None else mlflow_model
    description.add_flavor(FLAVOR_NAME, version=__version__, data=f"data/{_FILE}")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / _FILE
        learner.save(data)
        pyfunc.save_model(
            os.fspath(path),
            loader_module="varifold.mlflow",
            data_path=str(data),
            mlflow_model=description,
            pip_requirements=[f"varifold=={__version__}"] if pip_requirements is None else list(pip_requirements),
            model_config={"output": output},
            metadata=None if metadata is None else dict(metadata),
        )


def log_model(learner: Any, name: str, **options: Any) -> Any:
    """Log a learner to the current run; return MLflow's `ModelInfo`.

    `options` are those of `save_model` and of ``mlflow.models.Model.log``, such as ``registered_model_name``.
    """
    import sys

    _, model_class = _mlflow()
    return model_class.log(None, name=name, flavor=sys.modules[__name__], learner=learner, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Load the learner itself, which can continue to learn, from any URI that MLflow supports."""
    _mlflow()
    from mlflow.artifacts import download_artifacts

    return _load(Path(download_artifacts(artifact_uri=model_uri, dst_path=dst_path)) / "data" / _FILE)


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> Any:
    """Load a model for ``mlflow.pyfunc.load_model``."""
    return _PyfuncModel(_load(Path(path)), (model_config or {}).get("output", "labels"))


class _PyfuncModel:
    """Adapter of a learner to pyfunc: predicts frames with any columns."""

    def __init__(self, learner: Any, output: str) -> None:
        self.learner = learner
        self.output = _checked_output(output)

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Predict labels or probabilities; nothing is learned."""
        if self.output == "labels":
            return self.learner.predict_many(model_input)
        return self.learner.predict_proba_many(model_input)

    def get_raw_model(self) -> Any:
        """Return the learner."""
        return self.learner


def _load(file: Path) -> Any:
    if not file.is_file():
        raise ModelFileError(f"{file.parent.parent} is no model that varifold.mlflow saved: it has no data/{_FILE}")
    return load(file)


def _checked_output(output: str) -> str:
    if output not in _OUTPUTS:
        raise ParameterError(f"The 'output' parameter must be one of {', '.join(_OUTPUTS)}. Got {output!r} instead.")
    return output


def _mlflow() -> tuple[Any, Any]:
    try:
        import mlflow.pyfunc
        from mlflow.models import Model
    except ImportError as error:
        raise missing_extra("varifold.mlflow needs mlflow or mlflow-skinny, and pandas", "mlflow") from error
    return mlflow.pyfunc, Model
