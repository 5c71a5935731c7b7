"""Print what pyproject.toml asks for at run time, one requirement per line: with every extra, or with those named."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
chosen = sys.argv[1:] or list(extras)
wanted = [*project["dependencies"], *(requirement for extra in chosen for requirement in extras[extra])]
print("\n".join(dict.fromkeys(wanted)))
