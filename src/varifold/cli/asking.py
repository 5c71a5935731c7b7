"""Option ``--ask BUDGET[:POLICY]`` of `run` and `follow`."""

from __future__ import annotations

import argparse

from varifold.ask import POLICIES, AskPolicy
from varifold.errors import ParameterError

__all__ = ["POLICIES", "asking"]


def asking(text: str) -> AskPolicy:
    """Parse ``BUDGET[:POLICY]``."""
    try:
        return AskPolicy.parse(text)
    except ParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
