"""Tokens that allow reading, or reading and writing, of all models or of some."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import NamedTuple

from varifold.errors import ParameterError

READ, WRITE = 1, 2
_SHORTEST = 16
_SCOPES = {"read": READ, "write": WRITE}


class Grant(NamedTuple):
    """Permission of a token: a scope, for some models or for all (None)."""

    scope: int = 0
    models: frozenset[str] | None = None

    def covers(self, model: str) -> bool:
        """Return whether a model is among those of the token."""
        return self.scope > 0 and (self.models is None or model in self.models)


EVERYTHING = Grant(WRITE)
NOTHING = Grant()


class Tokens:
    """Tokens of a file, one per line; # starts a comment.

    ``read TOKEN``, or ``write TOKEN`` which may also read; ``write TOKEN models=plant,pumps`` is for these models only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = 0
        """How often the file was read again."""
        self._grants = _read(path)

    def reload(self) -> int:
        """Read the file again and return the number of tokens; after an error the known tokens stay."""
        self._grants = _read(self.path)
        self.version += 1
        return len(self._grants)

    def grant_of(self, authorization: bytes | None) -> Grant:
        """Return what a header ``Bearer TOKEN`` allows; takes the same time for any token."""
        kind, _, token = (authorization or b"").partition(b" ")
        digest = _digest(token.strip())
        granted = NOTHING
        for known, grant in self._grants:
            if hmac.compare_digest(known, digest):
                granted = grant
        return granted if kind.lower() == b"bearer" else NOTHING


def _read(path: Path) -> list[tuple[bytes, Grant]]:
    grants: dict[bytes, Grant] = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not text in UTF-8: byte {error.start + 1:,} is invalid") from error
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        models = words.pop().removeprefix("models=") if words[-1].startswith("models=") else None
        if models == "" or len(words) != 2 or words[0] not in _SCOPES:
            raise ParameterError(f"line {number} of {path} is not `read TOKEN` or `write TOKEN`, then models=NAME,...")
        if len(words[1]) < _SHORTEST:
            raise ParameterError(
                f"the token in line {number} of {path} is too short (< {_SHORTEST}): use `openssl rand -hex 24`"
            )
        digest = _digest(words[1].encode())
        if digest in grants:
            raise ParameterError(f"line {number} of {path} repeats a token; each token has one line")
        grants[digest] = Grant(_SCOPES[words[0]], None if models is None else frozenset(models.split(",")))
    if not grants:
        raise ParameterError(f"{path} holds no token; write a line such as `write $(openssl rand -hex 24)` into it")
    return list(grants.items())


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
