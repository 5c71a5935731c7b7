"""Print what pyproject.toml asks for at run time, every extra included, one requirement a line."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
print("\n".join(dict.fromkeys(wanted)))
