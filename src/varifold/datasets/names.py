"""Every data set that can be named: the registered ones, and those of installed packages."""

from __future__ import annotations

from varifold.datasets import registry
from varifold.datasets.own import is_own, own_data, own_names

__all__ = ["find", "names"]


def names() -> list[str]:
    """Names of all registered data sets, and of those that installed packages bring."""
    return [*registry.names(), *own_names()]


def find(name: str) -> registry.Entry:
    """The entry of a name or an alias; one of the user's own is made to describe it."""
    return own_data(name).entry if isinstance(name, str) and is_own(name) else registry.find(name)
