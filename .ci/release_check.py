"""Check that a tag can be released: version, changelog, citation, addresses.

    python .ci/release_check.py v1.0.0

Prints what is missing, one line each, and exits with 1 if anything is.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(tag: str) -> list[str]:
    """List what keeps the tag from being released."""
    text = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff")}
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/varifold/_version.py").read_text())[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    heading = re.search(rf"^## {re.escape(version)} \((.+)\)$", text["CHANGELOG.md"], re.MULTILINE)
    date = heading[1] if heading else ""
    cited = dict(re.findall(r"^(version|date-released): (.+)$", text["CITATION.cff"], re.MULTILINE))
    fragments = [path.name for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]
    checks = {
        f"the tag is {tag}, the version v{version}": tag == f"v{version}",
        f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'": re.fullmatch(r"\d{4}-\d\d-\d\d", date),
        f"changes/ still holds {len(fragments)} fragments": not fragments,
        "CITATION.cff has another version": cited.get("version") == version,
        "CITATION.cff has another date than CHANGELOG.md": cited.get("date-released") == date,
        "pyproject.toml has no [project.urls]": project.get("urls"),
    }
    return [message for message, passed in checks.items() if not passed]


if __name__ == "__main__":
    found = problems(sys.argv[1])
    print("\n".join(found) or f"{sys.argv[1]} can be released")
    sys.exit(bool(found))
