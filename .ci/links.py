"""Check that every link inside the built documentation has a target, and that pages load nothing from a network."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href")}
"""Tags that a browser loads automatically; each must be a file of the site."""


class Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record ids and links."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.append((tag, name, value))


def broken(root: Path) -> list[str]:
    """Return a line for each link that has no target or would load something from a network."""
    found: dict[Path, Page] = {
        path.resolve(): Page(path) for path in root.rglob("*.html") if "_static" not in path.parts
    }
    lines = []
    for path, page in found.items():
        for tag, name, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if (tag, name) in LOADED and parts.scheme != "data":
                    lines.append(f"{path.relative_to(root)}: <{tag}> loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = found.get(target)
            if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.anchors):
                lines.append(f"{path.relative_to(root)}: {link}")
    return lines


if __name__ == "__main__":
    wrong = broken(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "every internal link leads somewhere")
    sys.exit(bool(wrong))
