"""`fetch`: download data sets from their publishers into the cache and verify their checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from varifold.datasets.files import cache_directory, directories, locate
from varifold.datasets.registry import Entry, File, find
from varifold.errors import DataError, missing_extra

__all__ = ["by_hand", "fetch", "fetch_file"]

TIMEOUT = 30.0


def fetch(name: str, *, timeout: float = TIMEOUT) -> list[Path]:
    """Download the files of a data set that are not on this machine yet; return the paths of all."""
    entry = find(name)
    if entry.format == "synthetic":
        return []
    if not entry.files:
        raise DataError(by_hand(entry))
    return [locate(file) or fetch_file(entry, file, timeout=timeout) for file in entry.files]


def by_hand(entry: Entry) -> str:
    """Explain how to get a set that has no verified download."""
    place = directories()[0] / (entry.files[0].path if entry.files else entry.name)
    if entry.group == "natural":
        return (
            f"data set {entry.name!r} is not distributed; `python -m benchmarks.natural.{entry.recipe}` of a checkout "
            f"makes it from the files of {entry.page}; put it at {place}"
        )
    return (
        f"data set {entry.name!r} has no verified download; get it from {entry.archive or entry.page} "
        f"and put it at {place}"
    )


def fetch_file(entry: Entry, file: File, *, timeout: float = TIMEOUT) -> Path:
    """Download one file to the cache; keep it only if it is complete and its checksum is right."""
    if file.url is None:
        raise DataError(by_hand(entry))
    try:
        import pooch
        import requests
    except ImportError as error:
        raise missing_extra("downloads need pooch", "data") from error
    place = cache_directory() / file.path.removesuffix(".gz")
    place.parent.mkdir(parents=True, exist_ok=True)
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=place.name,
            path=place.parent,
            downloader=lambda url, output, _: _download(url, output, timeout),
        )
    except ValueError as error:
        raise DataError(
            f"{file.url} of data set {entry.name!r} has another sha256 than the registry ({file.sha256[:12]}...); "
            "nothing was kept: the response was damaged, or the publisher changed the file"
        ) from error
    except (requests.RequestException, OSError) as error:
        raise DataError(
            f"{file.url} of data set {entry.name!r} {_reason(error, timeout)}; a copy is found as "
            f"{file.path.removesuffix('.gz')} in the folder that VARIFOLD_DATA names"
        ) from error
    return place


def _download(url: str, output: Any, timeout: float) -> None:
    """Write the body of the response to a file and close the connection."""
    import requests

    with requests.Session() as session, session.get(url, stream=True, timeout=timeout) as response:
        response.raise_for_status()
        with open(output, "wb") as file:
            file.writelines(response.iter_content(1 << 16))


def _reason(error: Exception, timeout: float) -> str:
    """Describe the cause of a network error in one line."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"cannot be fetched: the server returned {response.status_code} {response.reason}"
    cause: BaseException = error
    while not isinstance(cause, TimeoutError) and (cause.__cause__ or cause.__context__) is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    if isinstance(cause, TimeoutError):
        return f"cannot be fetched: it did not respond within {timeout:g} s"
    text = str(cause).splitlines()[0][:120] if str(cause) else type(cause).__name__
    return f"cannot be fetched: {type(error).__name__} ({text})"
