"""CopulaImputer: impute absent features from the present ones, online."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from river import base as river_base
from scipy.special import ndtri

from varifold._engine.engine import Engine
from varifold._engine.targets.no_target import NoTarget
from varifold.base.blocks import to_block
from varifold.base.declared import declared
from varifold.base.estimator import Estimator, Name, undisturbed
from varifold.base.frames import like_index
from varifold.base.params import AnyOf, Constraint, Integer, OneOf, Real, validate_fields
from varifold.copula._imputer import ImputerModel
from varifold.copula.parameters import COPULA, copula_of


class Imputed(NamedTuple):
    """Imputed value of an absent feature and its interval."""

    value: Any
    low: Any
    high: Any


@declared
class CopulaImputer(Estimator, river_base.Transformer):
    """Impute absent features of mixed type from those present, by a Gaussian copula learned online.

    Put it before a river model that needs every feature of an instance. Only features learned before are imputed;
    Boolean and ordinal ones get their most probable level, a string column its most probable string.

    Parameters
    ----------
    statistic
        Imputed value of a continuous feature: the conditional ``"mean"`` or ``"median"``.
    coverage
        Probability of the interval that `impute_one` returns, in (0, 1).
    window, batch, levels, sweeps, c, gamma_min, max_dense
        See `OVFM`. Features beyond `max_dense` are left absent.
    max_features
        Maximum number of features; those seen longest ago are evicted first. None: unbounded.

    Notes
    -----
    *Deviations from the paper.* As for the copula of `OVFM`: marginals come from windows that start empty, correlation
    from uncentred moments in mini-batches with a decaying step.

    *Cost.* As `OVFM`, without its learners.

    Examples
    --------
    >>> from varifold.copula import CopulaImputer
    >>> imputer = CopulaImputer()
    >>> for step in range(400):
    ...     heat = (step * 37 % 100) / 10.0
    ...     imputer.learn_one({"heat": heat, "fan": "fast" if heat > 5 else "slow", "power": 3.0 * heat + step % 3})
    >>> filled = imputer.transform_one({"heat": 9.0})
    >>> filled["fan"], 25 < filled["power"] < 31
    ('fast', True)

    How well it knows the features is the error of `reconstruct_one` on those present:

    >>> def error(imputer):
    ...     rows = [{"heat": h, "power": 3.0 * h} for h in (1.0, 4.0, 9.0)]
    ...     return sum(abs(imputer.reconstruct_one(x)["power"].value - x["power"]) for x in rows) / len(rows)
    >>> early = CopulaImputer()
    >>> for step in range(30):
    ...     heat = (step * 37 % 100) / 10.0
    ...     early.learn_one({"heat": heat, "power": 3.0 * heat + step % 3})
    >>> error(early) > 2 * error(imputer)
    True

    References
    ----------
    Y. Zhao, E. Landgrebe, E. Shekhtman, M. Udell. Online missing value imputation and change point detection with the
    Gaussian copula. AAAI 2022.

    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "statistic": OneOf("mean", "median"),
        "coverage": Real(1e-6, 1 - 1e-6),
        **COPULA,
        "max_dense": Integer(1, 8192),
        "max_features": AnyOf(Integer(1), None),
    }

    statistic: str = "mean"
    coverage: float = 0.9
    window: int = 200
    batch: int = 20
    levels: int = 14
    sweeps: int = 2
    c: float = 5.0
    gamma_min: float = 0.05
    max_dense: int = 512
    max_features: int | None = None
    _engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        validate_fields(self, self._constraints())
        self._engine = self._make_engine()

    def _make_engine(self) -> Engine:
        model = ImputerModel(
            copula_of(self, self.max_dense),
            float(ndtri(0.5 + self.coverage / 2)),
            self.statistic == "mean",
        )
        return Engine(model, NoTarget(), scale="none", intercept=False, max_features=self.max_features)

    @property
    def _model(self) -> ImputerModel:
        model = self._engine.model
        assert isinstance(model, ImputerModel)
        return model

    # ------------------------------------------------------------------ one instance

    def learn_one(self, x: Mapping[Any, Any], w: float = 1.0) -> None:
        """Update marginals and correlations with one instance of sample weight w."""
        self._engine.learn_one(x, w=w)

    def transform_one(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return the instance with its absent features imputed; given values stay."""
        return _present(x) | {name: imputed.value for name, imputed in self.impute_one(x).items()}

    def impute_one(self, x: Mapping[Any, Any]) -> dict[Name, Imputed]:
        """Return (value, low, high) of every known feature that is absent from the instance.

        The feature lies between low and high with probability `coverage`; for a string column both are its most
        probable level.
        """
        imputed = self._engine.predict_one(x)
        given = _present(x)
        found: dict[Name, Imputed] = {}
        for name, slot in self._model.numbers().items():
            if name not in given and not np.isnan(imputed[0, slot]):
                found[name] = Imputed(*imputed[:, slot].tolist())
        for column, levels in self._model.columns().items():
            if column not in given and column not in found:
                level = _most_probable(levels, imputed[0])
                if level is not None:
                    found[column] = Imputed(level, level, level)
        return found

    def reconstruct_one(self, x: Mapping[Any, Any]) -> dict[Name, Imputed]:
        """Return (value, low, high) of every known feature that is present, as expected from the other present ones.

        The difference from the given values shows how well marginals and correlations are estimated (x̂_O of OVFM).
        """
        given = _present(x)
        found: dict[Name, Imputed] = {}
        for name in given:
            imputed = self.impute_one({other: value for other, value in given.items() if other != name})
            if name in imputed:
                found[name] = imputed[name]
        return found

    # ------------------------------------------------------------------ many instances

    def learn_many(self, X: Any, w: Iterable[float] | None = None) -> None:
        """Learn instances in order: a Block, dicts, a data frame, a sparse matrix or an array."""
        self._engine.run(to_block(X, None, w), predict=False)

    def transform_many(self, X: Any) -> Any:
        """Return `transform_one` for each instance.

        A frame returns a frame of the same kind (pandas: with the same index), other input a list of dicts.
        """
        block = to_block(X)
        values = self._engine.run(block, learn=False)
        names, columns = self._model.numbers(), self._model.columns()
        if nw.dependencies.is_into_dataframe(X):
            return like_index(self._fill_frame(nw.from_native(X, eager_only=True), values), X)
        out = []
        for row, imputed in zip(block.rows(), values, strict=True):
            filled = dict(row)
            for name, slot in names.items():
                if name not in filled and not np.isnan(imputed[slot]):
                    filled[name] = float(imputed[slot])
            for column, levels in columns.items():
                if column not in filled:
                    level = _most_probable(levels, imputed)
                    if level is not None:
                        filled[column] = level
            out.append(filled)
        return out

    def _fill_frame(self, frame: nw.DataFrame[Any], values: NDArray[np.float64]) -> Any:
        names, columns = self._model.numbers(), self._model.columns()
        filled = []
        for name in dict.fromkeys([*frame.columns, *names, *columns]):
            imputed: list[Any]
            if name in names:
                imputed = [None if np.isnan(v) else v for v in values[:, names[name]].tolist()]
            elif name in columns:
                imputed = [_most_probable(columns[name], row) for row in values]
            else:
                imputed = [None] * len(frame)
            given = frame[name].to_list() if name in frame.columns else [None] * len(frame)
            cells = [t if g is None or g != g else g for g, t in zip(given, imputed, strict=True)]
            filled.append(nw.new_series(str(name), cells, backend=nw.get_native_namespace(frame)))
        return frame.select(filled).to_native()

    # ------------------------------------------------------------------ inspection

    @undisturbed
    def correlation(self) -> tuple[list[Name], NDArray[np.float64]]:
        """Return the names of the features under the copula (indicators as `f=v`) and their latent correlations."""
        slots, matrix = self._model.copula.correlation()
        return [self._engine.space.name_of(slot) for slot in slots], matrix


def _present(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the present features of an instance."""
    return {name: value for name, value in x.items() if value is not None and value == value}


def _most_probable(levels: dict[str, tuple[int, bool]], imputed: NDArray[np.float64]) -> str | None:
    """Return the most probable level; the reference level has 1 minus the sum of the others."""
    chances = {level: float(imputed[slot]) for level, (slot, reference) in levels.items() if not reference}
    chances = {level: p for level, p in chances.items() if not np.isnan(p)}
    for level, (_, reference) in levels.items():
        if reference:
            chances[level] = max(0.0, 1.0 - sum(chances.values()))
    return max(chances, key=lambda level: chances[level]) if chances else None
