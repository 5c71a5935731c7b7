"""A real Spark on this machine for the tests marked `spark`; nothing of it is imitated."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

WARNINGS = [
    # pyspark 4.3 with pandas 3
    "ignore:PySpark does not yet fully support pandas >= 3:FutureWarning",
    # sockets and processes to the JVM that pyspark leaves to the garbage collector
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:subprocess \\d+ is still running:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
    "ignore:Exception ignored in. <function Popen:pytest.PytestUnraisableExceptionWarning",
]


def missing() -> str | None:
    """What Spark needs and is not there."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed (pip install 'varifold[spark]')"
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "there is no Java (apt install openjdk-17-jre-headless)"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what needs Spark where it cannot run; where all must run (VARIFOLD_COMPLETE), that is an error."""
    reason = missing()
    for item in items:
        if item.get_closest_marker("spark") is None:
            continue
        for warning in WARNINGS:
            item.add_marker(pytest.mark.filterwarnings(warning))
        if reason and os.environ.get("VARIFOLD_COMPLETE"):
            raise pytest.UsageError(f"the tests of Spark cannot run: {reason}")
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.showConsoleProgress", "false")
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()
