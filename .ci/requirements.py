"""Print the run-time requirements of pyproject.toml, one per line: with every extra, or only with the named ones."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
chosen = sys.argv[1:] or list(extras)
wanted = [*project["dependencies"], *(requirement for extra in chosen for requirement in extras[extra])]
print("\n".join(dict.fromkeys(wanted)))
