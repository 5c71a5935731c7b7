"""Print facts about the source: lines by folder and kind, longest and most complex functions, comments, wording.

    python .ci/facts.py [CHECKOUT]

Two runs on two checkouts make a table of before and after.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = (".py", ".pyx", ".pxd", ".pyi", "meson.build", "other")
BRANCH = re.compile(r"\b(if|elif|for|while|except|and|or|case)\b")
NO_FUNCTION = r"(?!\s+(?:class|extern|enum|struct|packed|union)\b)"
FUNCTION = re.compile(rf"^( *)(?:cpdef|cdef|def)\b{NO_FUNCTION}[^=\n]*?\b(\w+)\(", re.M)
WORDS = {
    "answer, says, speaks": r"answers?|answered|says|said|speaks",
    "refuse, give up": r"refus\w+|gives? up|given up",
    "asked, told, heard, foresee": r"asked|asks|told|heard|foresee\w*",
    "tell": r"tells?",
    "beside, stand, aside": r"beside|stands?|aside",
    "door, walk, room": r"doors?|walks?|walked|rooms?|roomier",
    "teach, met, sight, heavy": r"teach\w*|met|sights?|heavy|carries weight",
    "crowd, shelf, young, portrait, fate": r"crowd\w*|shel(?:f|ves)|young|portraits?|fate|why_not|take_up",
    "Number*": r"Number[A-Z]\w+",
    "of its own, by itself, lately, anew": r"of its own|by itself|so many|lately|anew|mends?|spoil\w*|spoilt",
}


class Function(NamedTuple):
    """A function with its size; complexity is one plus its branches."""

    place: str
    lines: int
    complexity: int


def python_functions(path: Path, name: str) -> Iterator[Function]:
    """Measure the functions of a Python file from its syntax tree."""
    branches = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.match_case, ast.Assert)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = list(ast.walk(node))
            complexity = 1 + sum(isinstance(one, branches) for one in inner)
            complexity += sum(len(one.values) - 1 for one in inner if isinstance(one, ast.BoolOp))
            yield Function(f"{name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1, complexity)


def cython_functions(path: Path, name: str) -> Iterator[Function]:
    """Measure the functions of a Cython file by indentation and branch words."""
    text = path.read_text()
    for match in FUNCTION.finditer(text):
        rest = text[match.end() :]
        head = re.search(r":[ \t]*(?:#.*)?\n", rest)
        if head is None:
            continue
        end = re.search(rf"^(?! {{{len(match[1]) + 1}}}|\s*$|\s*\))", rest[head.end() :], re.M)
        body = rest[head.end() : head.end() + end.start()] if end else rest[head.end() :]
        code = re.sub(r'"""[\s\S]*?"""|#.*|"[^"\n]*"|\'[^\'\n]*\'', "", body)
        lines = (rest[: head.end()] + body.rstrip()).count("\n") + 1
        yield Function(f"{name}:{match[2]}", lines, 1 + len(BRANCH.findall(code)))


def comments(path: Path) -> tuple[int, int]:
    """Count the comment lines with text and the lines of code of a Cython file."""
    text = re.sub(r'"""[\s\S]*?"""', "", path.read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if re.search(r"(?:^|\s)# *[^-\s]", line)]
    return len(said), len([line for line in lines if not line.startswith("#")])


def docstrings(path: Path) -> Iterator[str]:
    """Iterate over the docstrings of a file's functions, classes and the file."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node)
                if text:
                    yield text
    else:
        yield from re.findall(r':\n\s+"""\s*([^"]+)"""', path.read_text())


def prose(path: Path) -> str:
    """Return the human-readable text of a file: comments, strings and names, or all of a page."""
    if path.suffix != ".py":
        return path.read_text()
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return " ".join(one.string for one in tokens if one.type in (tokenize.COMMENT, tokenize.STRING, tokenize.NAME))


def main(root: Path) -> None:
    """Print all facts of a checkout."""
    source = root / "src" / "varifold"
    files = [p for p in sorted(source.rglob("*")) if p.is_file() and not p.suffix.startswith((".pyc", ".so", ".c"))]
    files = [p for p in files if p.suffix != ".pyi" or committed_stubs(root)]
    lines: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    for path in files:
        parts = path.relative_to(source).parts
        folder = parts[0] if len(parts) > 1 else "(root)"
        kind = path.name if path.name in KINDS else path.suffix if path.suffix in KINDS else "other"
        lines[folder, kind] += path.read_bytes().count(b"\n")
        counts[kind] += 1
    table(lines, counts)
    functions: dict[str, list[Function]] = {".py": [], ".pyx": []}
    for path in files:
        name = path.relative_to(source).as_posix()
        if path.suffix == ".py":
            functions[".py"] += python_functions(path, name)
        elif path.suffix in (".pyx", ".pxd"):
            functions[".pyx"] += cython_functions(path, name)
    for kind, found in functions.items():
        for title, key in (("longest", 1), ("most complex", 2)):
            print(f"\nTen {title} functions, {kind}")
            for one in sorted(found, key=lambda f: -f[key])[:10]:
                print(f"  {one[key]:5d}  {one.place}")
    said, code = (sum(values) for values in zip(*[comments(p) for p in files if p.suffix == ".pyx"], strict=True))
    print(f"\nComments per 100 kernel lines: {100 * said / code:.1f} ({said} in {code})")
    texts = [text for p in files if p.suffix in (".py", ".pyx", ".pxd") for text in docstrings(p)]
    for word in ("What", "The"):
        beginning = sum(text.startswith(f"{word} ") for text in texts)
        print(f'Docstrings that begin with "{word}": {beginning} of {len(texts)}')
    pages = [*files, root / "README.md", *sorted((root / "docs").glob("*.md"))]
    read = "\n".join(prose(p) for p in pages if p.suffix in (".py", ".pyx", ".pxd", ".md") and p.exists())
    print("\nWords of STYLE.md's table in source and pages")
    for title, pattern in WORDS.items():
        print(f"  {count(pattern, read):5d}  {title}")
    tests = [p for p in sorted((root / "tests").rglob("*.py")) if "__pycache__" not in p.parts]
    print(summary(tests))


def count(pattern: str, text: str) -> int:
    """Count the occurrences of whole words, also as parts of names with underscores."""
    return len(re.findall(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", text))


def summary(tests: list[Path]) -> str:
    """Describe the size of the tests."""
    return f"\nTests: {len(tests)} files, {sum(p.read_bytes().count(chr(10).encode()) for p in tests)} lines"


def committed_stubs(root: Path) -> bool:
    """Return whether a checkout keeps its stubs under version control."""
    return "*.pyi" not in (root / ".gitignore").read_text() if (root / ".gitignore").exists() else True


def table(lines: Counter[tuple[str, str]], counts: Counter[str]) -> None:
    """Print lines by folder and kind, and the number of files."""
    folders = sorted({folder for folder, _ in lines})
    print(f"{'lines':14s}" + "".join(f"{kind:>12s}" for kind in KINDS) + f"{'all':>9s}")
    for folder in folders:
        row = [lines[folder, kind] for kind in KINDS]
        print(f"{folder:14s}" + "".join(f"{n:12,d}" for n in row) + f"{sum(row):9,d}")
    totals = [sum(lines[folder, kind] for folder in folders) for kind in KINDS]
    print(f"{'all':14s}" + "".join(f"{n:12,d}" for n in totals) + f"{sum(totals):9,d}")
    print(f"{'files':14s}" + "".join(f"{counts[kind]:12,d}" for kind in KINDS) + f"{sum(counts.values()):9,d}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
