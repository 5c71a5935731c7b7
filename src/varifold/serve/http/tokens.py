"""Tokens that allow reading, or reading and writing."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from varifold.errors import ParameterError

READ, WRITE = 1, 2
_SHORTEST = 16
_SCOPES = {"read": READ, "write": WRITE}


class Tokens:
    """Tokens of a file, one per line: ``read TOKEN``, or ``write TOKEN`` which may also read; # starts a comment."""

    def __init__(self, path: Path) -> None:
        self._scopes: list[tuple[bytes, int]] = []
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            if len(words) > 2 or (len(words) == 2 and words[0] not in _SCOPES):
                raise ParameterError(f"line {number} of {path} is not `read TOKEN` or `write TOKEN`")
            if len(words[-1]) < _SHORTEST:
                raise ParameterError(
                    f"the token in line {number} of {path} is too short (< {_SHORTEST}): use `openssl rand -hex 24`"
                )
            scope = _SCOPES[words[0]] if len(words) == 2 else WRITE
            self._scopes.append((_digest(words[-1].encode()), scope))
        if not self._scopes:
            raise ParameterError(f"{path} holds no token; write a line such as `write $(openssl rand -hex 24)` into it")

    def scope_of(self, authorization: bytes | None) -> int:
        """Return what a header ``Bearer TOKEN`` allows: 0, READ or WRITE; takes the same time for any token."""
        kind, _, token = (authorization or b"").partition(b" ")
        digest = _digest(token.strip())
        granted = 0
        for known, scope in self._scopes:
            if hmac.compare_digest(known, digest):
                granted = max(granted, scope)
        return granted if kind.lower() == b"bearer" else 0


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
