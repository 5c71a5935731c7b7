"""Classifiers whose parameters are the fields of a data class: declared once, the constructor comes of them."""

from __future__ import annotations

from dataclasses import dataclass

from varifold.base.classifier import VaryingClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class DeclaredClassifier(VaryingClassifier):
    """A `VaryingClassifier` whose subclasses declare their parameters as fields, without a constructor of their own.

    The parameters that all methods have are here, by keyword; a method's own come before them, by place.
    """

    scale: str = "standard"
    fit_intercept: bool = True
    clip: float = 3.0
    max_features: int | None = None
    evict: str = "oldest"

    def __post_init__(self) -> None:
        super().__init__(
            scale=self.scale,
            fit_intercept=self.fit_intercept,
            clip=self.clip,
            max_features=self.max_features,
            evict=self.evict,
        )
