"""Print the run-time requirements of pyproject.toml, one per line: with every extra, or only with the named ones.

`none` names no extra, `pandas` the one package. With --lowest the oldest declared versions, `==` in place of `>=`.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
named = [argument for argument in sys.argv[1:] if argument != "--lowest"]
chosen = named or list(extras)
extras |= {"none": [], "pandas": [requirement for requirement in extras["spark"] if requirement.startswith("pandas")]}
wanted = [*project["dependencies"], *(requirement for extra in chosen for requirement in extras[extra])]
if "--lowest" in sys.argv:
    wanted = [requirement.replace(">=", "==").partition(",")[0] for requirement in wanted]
print("\n".join(dict.fromkeys(wanted)))
