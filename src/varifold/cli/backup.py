"""``varifold backup``: copy the state of a server or of ``follow --state``, also while it runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from varifold.base.plural import plural
from varifold.errors import ParameterError


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "backup",
        help="copy the state of a server to a file",
        description="Copy the state of `varifold serve` or `follow --state` to one file, also while it runs. The copy "
        "holds everything that was acknowledged before it began; `varifold restore` makes a folder of it.",
    )
    parser.add_argument("state", type=Path, metavar="STATE", help="folder of the state")
    parser.add_argument("file", type=Path, metavar="FILE", help="file to write")
    parser.add_argument("--force", action="store_true", help="replace a file that exists, once the copy is complete")


def run(args: argparse.Namespace) -> int:
    """Copy the state and report the number of models and bytes."""
    from varifold.serve.core.database import backup

    if args.file.exists() and not args.force:
        raise ParameterError(f"{args.file} exists; give another name, or --force to replace it")
    models = backup(args.state, args.file)
    size = args.file.stat().st_size
    print(f"varifold: {plural(models, 'model')}, {size:,} bytes in {args.file}", file=sys.stderr)
    return 0
