"""Names of all data sets: registered ones and those of installed packages."""

from __future__ import annotations

from varifold.datasets import registry
from varifold.datasets.own import is_own, own_data, own_names

__all__ = ["find", "names"]


def names() -> list[str]:
    """Return the names of all registered data sets and of those of installed packages."""
    return [*registry.names(), *own_names()]


def find(name: str) -> registry.Entry:
    """Return the entry of a name or an alias; for a user's own data set, an entry that describes it."""
    return own_data(name).entry if isinstance(name, str) and is_own(name) else registry.find(name)
