"""Declare the parameters of learners as fields of a data class, which generates the constructor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def declared(cls: type[T], /) -> type[T]: ...
@overload
def declared(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(eq_default=False, field_specifiers=(field,))
def declared(cls: Any = None, /, *, kw_only: bool = False) -> Any:
    """Turn a learner class into a data class."""
    make = dataclass(eq=False, repr=False, kw_only=kw_only)
    return make if cls is None else make(cls)
