"""Check a folder of models without serving it: every page, every row, every change that would be replayed."""

from __future__ import annotations

import os
from pathlib import Path

from varifold.base.plural import plural
from varifold.errors import VarifoldError
from varifold.serve.core.database import FILE, Database, check_file, check_header
from varifold.serve.core.models import lock_folder
from varifold.serve.core.state import Limits, ModelState


def check_folder(folder: Path, limits: Limits) -> tuple[list[str], bool]:
    """Return a report with a line per model, and whether the folder is intact; nothing is changed."""
    check_header(folder / FILE)
    lock = lock_folder(folder)
    try:
        check_file(folder / FILE)
        database = Database(folder, read_only=True)
        try:
            lines, sound = [], True
            for row in database.models():
                try:
                    _, recovery = ModelState.load(database, row, limits)
                except VarifoldError as error:
                    lines.append(f"{row.name}: cannot be recovered: {error}")
                    sound = False
                    continue
                changes = plural(recovery.replayed, "change")
                lines.append(f"{row.name}: {changes} after the snapshot at {recovery.snapshot:,}")
                for one in recovery.set_aside:
                    lines.append(f"{row.name}: change {one.seq:,} would be set aside: {one.reason}")
                    sound = False
            return lines, sound
        finally:
            database.close()
    finally:
        os.close(lock)
