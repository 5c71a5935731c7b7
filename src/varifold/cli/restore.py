"""``varifold restore``: make a state folder from a backup."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from varifold.base.plural import plural


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "restore",
        help="make the state of a server from a backup",
        description="Make a folder for `varifold serve --dir` or `follow --state` from a file that `varifold backup` "
        "wrote. A folder that holds a state already is left alone.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="file that `varifold backup` wrote")
    parser.add_argument("state", type=Path, metavar="STATE", help="folder to make")


def run(args: argparse.Namespace) -> int:
    """Restore the backup and report the number of models."""
    from varifold.serve.core.database import restore

    models = restore(args.file, args.state)
    print(f"varifold: {plural(models, 'model')} in {args.state}", file=sys.stderr)
    return 0
