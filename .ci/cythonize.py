"""Translate a folder's Cython modules to C in one process; meson runs it once per folder.

Cython spends about a second per process on loading itself and its utility code, so one process for twenty modules takes
a third of the time of twenty processes. A module whose C file is newer than everything it was made from is left alone.

    python .ci/cythonize.py OUTPUT_FOLDER DEPFILE [CYTHON OPTION ...] MODULE.pyx ...
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from Cython.Compiler import CmdLine
from Cython.Compiler.Main import compile_single

SOURCES = Path(__file__).resolve().parents[1] / "src"


def inputs(c_file: Path) -> list[Path]:
    """Return the input files of a C file from the depfile that Cython wrote next to it."""
    depfile = Path(f"{c_file}.dep")
    if not depfile.exists():
        return []
    lines = depfile.read_text().splitlines()[1:]  # the first names the C file
    return [(SOURCES / line.removesuffix("\\").strip().replace("\\ ", " ")).resolve() for line in lines]


def is_current(c_file: Path) -> bool:
    """Return whether a C file is newer than all of its inputs, this script and the compiler."""
    made_from = inputs(c_file)
    if not made_from or not c_file.exists() or not all(path.exists() for path in made_from):
        return False
    made = c_file.stat().st_mtime_ns
    tools = [Path(__file__), Path(CmdLine.__file__)]
    return all(path.stat().st_mtime_ns <= made for path in [*made_from, *tools])


def main(folder: Path, depfile: Path, arguments: list[str]) -> int:
    """Translate the modules that changed and list the inputs of all of them for ninja."""
    options, modules = CmdLine.parse_command_line([*arguments, "--depfile"])
    names = [Path(module).resolve() for module in modules]
    os.chdir(SOURCES)  # error positions and depfiles are relative to it, so that a build contains no absolute paths
    found: set[Path] = set()
    for path in names:
        c_file = folder / f"{path.stem}.c"
        if not is_current(c_file):
            options.output_file = str(c_file)
            if compile_single(str(path.relative_to(SOURCES)), options, None).num_errors:
                c_file.unlink(missing_ok=True)
                return 1
        found.update(inputs(c_file))
    escaped = [str(path).replace(" ", "\\ ") for path in sorted(found)]
    depfile.write_text(f"{folder / names[0].stem}.c: {' '.join(escaped)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]))
