"""Errors of the server, with their HTTP status."""

from __future__ import annotations

from pathlib import Path

from varifold.errors import VarifoldError


class RequestError(VarifoldError, ValueError):
    """A request that is rejected; the state is unchanged."""

    status = 400


class ForbiddenError(RequestError):
    """The token does not permit the request."""

    status = 403


class NotFoundError(RequestError):
    """No such model, route or waiting instance."""

    status = 404


class ConflictError(RequestError):
    """The model already exists, or the instance already has its label."""

    status = 409


class ExpiredError(RequestError):
    """The waiting instance was dropped by the limits on count or age."""

    status = 410


class TooLargeError(RequestError):
    """The body of a request exceeds its limit."""

    status = 413


class RefusedError(RequestError):
    """A value that cannot be used; the message names it and the remedy."""

    status = 422


class BusyError(RequestError):
    """Too many changes wait for the disk; retry later."""

    status = 429


class StoppedError(RequestError):
    """The server accepts no changes: the state cannot be written, or the server is stopping."""

    status = 503


def reason_of(error: BaseException, folder: Path) -> str:
    """Return the text of an error for a response: paths are relative to the server's folder, others are left out.

    The message of a foreign error may reveal details of the machine: only its type or the system's reason is returned.
    """
    if isinstance(error, VarifoldError):
        return str(error).replace(f"{folder.absolute()}/", "").replace(str(folder.absolute()), "the folder")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


class StateError(VarifoldError, RuntimeError):
    """The state on disk is damaged, of a later version, or in use by another process."""


class DiskError(VarifoldError, OSError):
    """The state cannot be written; what was acknowledged is on disk."""

    def __str__(self) -> str:
        return str(self.args[0])
