"""Every figure of the five papers, drawn from our own runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from varifold.base.nearest import nearest
from varifold.errors import UnknownNameError

__all__ = ["PAPERS", "Figure", "figures"]


@dataclass(frozen=True)
class Figure:
    """A figure: its number in the paper, its content, and the function that draws it to a file with some repeats."""

    number: str
    title: str
    draw: Callable[[str, int], None]


PAPERS = ("olvf", "ovfm", "orf3v", "cwfe", "ovfiv")


def figures(paper: str) -> list[Figure]:
    """Return the figures of a paper."""
    if paper not in PAPERS:
        raise UnknownNameError(f"there is no paper {paper!r}{nearest(paper, PAPERS)} (known: {', '.join(PAPERS)})")
    found: list[Figure] = importlib.import_module(f"varifold.report.papers.{paper}").FIGURES
    return found
