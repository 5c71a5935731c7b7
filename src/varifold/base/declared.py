"""Learners whose parameters are the fields of a data class: declared once, the constructor follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform, overload

from varifold.base.classifier import VaryingClassifier
from varifold.base.regressor import VaryingRegressor

T = TypeVar("T")


@overload
def declared(cls: type[T], /) -> type[T]: ...
@overload
def declared(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(eq_default=False)
def declared(cls: Any = None, /, *, kw_only: bool = False) -> Any:
    """Make a data class of a learner."""
    make = dataclass(eq=False, repr=False, kw_only=kw_only)
    return make if cls is None else make(cls)


def _given(learner: Any, cls: Any) -> dict[str, Any]:
    """The values of the fields that a base class declares."""
    return {field.name: getattr(learner, field.name) for field in fields(cls)}


@declared(kw_only=True)
class DeclaredClassifier(VaryingClassifier):
    """A `VaryingClassifier` whose subclasses declare their parameters as fields, without a constructor of their own.

    A subclass is decorated with `declared`. The parameters that all methods have are here, by keyword; a method's own
    come before them, by position or keyword.
    """

    scale: str = "standard"
    fit_intercept: bool = True
    clip: float = 3.0
    max_features: int | None = None
    evict: str = "oldest"
    objective: str = "accuracy"
    costs: Mapping[Any, Any] | None = None
    coverages: Sequence[float] = ()

    def __post_init__(self) -> None:
        super().__init__(**_given(self, DeclaredClassifier))


@declared(kw_only=True)
class UnscaledClassifier(VaryingClassifier):
    """A `DeclaredClassifier` that takes values as they come: its subclasses have no scaler to set."""

    max_features: int | None = None
    evict: str = "oldest"
    objective: str = "accuracy"
    costs: Mapping[Any, Any] | None = None
    coverages: Sequence[float] = ()

    def __post_init__(self) -> None:
        super().__init__(scale="none", fit_intercept=True, **_given(self, UnscaledClassifier))


@declared(kw_only=True)
class DeclaredRegressor(VaryingRegressor):
    """A `VaryingRegressor` whose subclasses declare their parameters as fields, as with `DeclaredClassifier`."""

    scale: str = "standard"
    fit_intercept: bool = True
    clip: float = 3.0
    max_features: int | None = None
    evict: str = "oldest"
    coverages: Sequence[float] = ()

    def __post_init__(self) -> None:
        super().__init__(**_given(self, DeclaredRegressor))


@declared(kw_only=True)
class UnscaledRegressor(VaryingRegressor):
    """A `DeclaredRegressor` that takes values as they come, as `UnscaledClassifier` does."""

    max_features: int | None = None
    evict: str = "oldest"
    coverages: Sequence[float] = ()

    def __post_init__(self) -> None:
        super().__init__(scale="none", fit_intercept=True, **_given(self, UnscaledRegressor))
