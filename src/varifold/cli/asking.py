"""Option ``--ask BUDGET[:POLICY]`` of `run` and `follow`."""

from __future__ import annotations

import argparse

from varifold.ask import POLICIES, AskPolicy

__all__ = ["POLICIES", "asking"]


def asking(text: str) -> AskPolicy:
    """Parse ``BUDGET[:POLICY]``."""
    budget, _, policy = text.partition(":")
    try:
        return AskPolicy(float(budget), by=policy or POLICIES[0])
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form BUDGET[:POLICY]: {error}") from None
