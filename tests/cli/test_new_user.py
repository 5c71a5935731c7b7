"""What a new user's first commands print."""

from __future__ import annotations

import types

import pytest

from varifold.cli import detect
from varifold.cli.writers import check_format
from varifold.errors import ParameterError


def test_alarms_are_listed_before_rows_with_higher_scores():
    seen = detect._Seen()
    records = [{"row": i, "score": 10.0 + i, "anomaly": False} for i in range(20)]
    records.append({"row": 20, "score": 1.0, "anomaly": True})
    seen.add(records, types.SimpleNamespace(block=types.SimpleNamespace(y=[None] * 21)))
    assert [record["row"] for record in seen.top][:2] == [20, 19]


def test_an_unknown_suffix_names_the_known_ones_and_no_option():
    with pytest.raises(ParameterError, match=r"x\.txt is none of \.csv, .*; name a file with one of them") as error:
        check_format("x.txt")
    assert "--" not in str(error.value)
