"""Log of the server on standard error, as text or as one JSON object per line: time, level, model, text."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

from varifold.base.json_text import write_json

LOGGER = logging.getLogger("varifold.serve")


def log(level: int, text: str, model: str | None = None, error: BaseException | None = None) -> None:
    """Write a line to the log; with an error also its traceback."""
    LOGGER.log(level, "%s", text, extra={"model": model}, exc_info=error)


def info(text: str, model: str | None = None) -> None:
    """Log what is normal."""
    log(logging.INFO, text, model)


def warning(text: str, model: str | None = None) -> None:
    """Log what an operator may want to look at."""
    log(logging.WARNING, text, model)


def failure(text: str, model: str | None = None, error: BaseException | None = None) -> None:
    """Log a failure, which needs an operator."""
    log(logging.ERROR, text, model, error)


class _Formatter(logging.Formatter):
    """Formats records as text or as JSON."""

    def __init__(self, *, json: bool) -> None:
        super().__init__()
        self._json = json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; in JSON a traceback is a field of it."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        model, text = getattr(record, "model", None), record.getMessage()
        trace = self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else None
        if not self._json:
            line = f"{at} {record.levelname} {'' if model is None else f'{model}: '}{text}"
            return line if trace is None else f"{line}\n{trace}"
        fields: dict[str, Any] = {"time": at, "level": record.levelname.lower(), "model": model, "text": text}
        return write_json(fields if trace is None else {**fields, "traceback": trace}).decode()


def configure(form: str) -> None:
    """Write the logs of the server, and warnings of the libraries, to standard error, as "text" or "json".

    uvicorn warns of each request that is invalid: clients without a token could fill the disk with the log.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(json=form == "json"))
    logging.getLogger().handlers = [handler]
    logging.getLogger("varifold.serve").setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
