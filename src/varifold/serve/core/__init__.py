"""Durable state of named models: store, snapshots, recovery, waiting instances. No framework, no network.

For Linux and macOS: it locks its folder and forks.
"""

import sys

from varifold.errors import MissingExtraError

if sys.platform == "win32":
    raise MissingExtraError(
        "`varifold serve` and `varifold follow` need Linux or macOS, since they lock their folder and fork; on Windows "
        "use the Windows Subsystem for Linux"
    )
