"""Option ``--ask BUDGET[:POLICY]`` of `run` and `follow`."""

from __future__ import annotations

import argparse

from varifold.ask import POLICIES, AskPolicy
from varifold.errors import ParameterError

__all__ = ["POLICIES", "START", "asking"]

START = "all of the first 8 + 800 * BUDGET"
"""Rows whose label is requested whatever it is worth: `AskPolicy.start` with the defaults of its other parameters."""


def asking(text: str) -> AskPolicy:
    """Parse ``BUDGET[:POLICY]``."""
    try:
        return AskPolicy.parse(text)
    except ParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
