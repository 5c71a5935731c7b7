"""Put the parts of a page into one HTML file: style inside, no network, no script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import resources

__all__ = ["html_document"]


def html_document(title: str, parts: Iterable[str], kind: str = "") -> str:
    """Write the document; `kind` is the class of its body, for the style sheet."""
    style = resources.files("varifold.report").joinpath("page.css").read_text(encoding="utf-8")
    main = f'<main class="{kind}">' if kind else "<main>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body>{main}" + "\n".join(parts) + "</main></body></html>"
    )
