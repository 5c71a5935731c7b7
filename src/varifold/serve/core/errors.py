"""Errors of the server, with their HTTP status."""

from __future__ import annotations

from pathlib import Path

from varifold.errors import VarifoldError


class RequestError(VarifoldError, ValueError):
    """A request that is rejected; the state is unchanged."""

    status = 400


class ForbiddenError(RequestError):
    """Raised when the token does not permit the request."""

    status = 403


class NotFoundError(RequestError):
    """No such model, route or waiting instance."""

    status = 404


class ConflictError(RequestError):
    """Raised when the model already exists, or the instance already has its label."""

    status = 409


class ExpiredError(RequestError):
    """Raised for a waiting instance that was dropped by the limits on count or age."""

    status = 410


class TooLargeError(RequestError):
    """Raised when the body of a request exceeds its limit."""

    status = 413


class RejectedError(RequestError):
    """A value that cannot be used; the message names it and the remedy."""

    status = 422


class BusyError(RequestError):
    """Too many changes wait for the disk; retry later."""

    status = 429


class BudgetError(RequestError):
    """A change needs more memory than the budgets allow; it is not applied."""

    status = 507


class StoppedError(RequestError):
    """Raised when the server accepts no changes: the state cannot be written, or the server is stopping."""

    status = 503


_LONGEST = 2_000
"""Most characters of an error in a response: it may repeat a name from the request, in each of many rows."""


def shortened(error: BaseException) -> str:
    """Return the text of an error, without the rest if it is very long."""
    text = str(error)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


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
    """Raised when the state on disk is damaged, of a later version, or in use by another process."""


class DiskError(VarifoldError, OSError):
    """Raised when the state cannot be written; what was acknowledged is on disk."""

    def __str__(self) -> str:
        return str(self.args[0])

    @classmethod
    def of(cls, error: Exception) -> DiskError:
        """Return the error of a server for an error of the system or of SQLite."""
        reason = getattr(error, "strerror", None) or str(error)
        return cls(
            f"the state cannot be written ({reason}); the server accepts no more changes and stops. Nothing that was "
            "acknowledged is lost: free space or repair the disk, then start it again"
        )
