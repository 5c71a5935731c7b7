"""What a new user's first commands print."""

from __future__ import annotations

import types

import pytest

import varifold
from varifold.cli import detect, main
from varifold.cli.writers import check_format
from varifold.errors import ParameterError, VarifoldWarning


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


def test_a_model_that_continues_with_another_target_says_so(tmp_path, capsys):
    path, model = tmp_path / "a.csv", tmp_path / "a.model"
    path.write_text("a,state,kind\n" + "".join(f"{i % 7},{'xy'[i % 7 > 3]},{'pq'[i % 2]}\n" for i in range(60)))
    words = ["run", str(path), "--model", "arow", "--save", str(model)]
    assert main([*words, "--target", "state"]) == 0
    capsys.readouterr()
    assert main(["run", str(path), "--load", str(model), "--target", "state"]) == 0
    assert "learned to predict" not in capsys.readouterr().err
    assert main(["run", str(path), "--load", str(model), "--target", "kind"]) == 0
    assert f"{model} learned to predict 'state' and continues with 'kind'" in capsys.readouterr().err


def test_the_head_of_a_run_counts_columns_and_features_and_one_row_is_singular(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n" + "".join(f"{i},{'uvw'[i % 3]},{'pq'[i % 2]}\n" for i in range(60)) + "1,u\n")
    words = ["run", str(path), "--target", "y", "--model", "arow", "--on-error", "skip"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "arow on a.csv: 60 instances, 2 columns (4 features), 2 classes" in out
    assert "1 row could not be read, skipped" in out


def test_an_index_is_reported_when_it_is_learned_not_when_it_is_predicted(tmp_path, capsys):
    path, model = tmp_path / "a.csv", tmp_path / "a.model"
    path.write_text(",a,y\n" + "".join(f"{i},{i % 7},{'xy'[i % 7 > 3]}\n" for i in range(60)))
    with pytest.warns(VarifoldWarning, match="it is left out, as an index"):
        assert main(["run", str(path), "--model", "arow", "--target", "y", "--save", str(model)]) == 0
    assert varifold.load(model).reading["ignore"] == ["column1"]
    assert main(["predict", str(model), str(path)]) == 0
    assert main(["explain", str(model), "--row", "3", "--data", str(path)]) == 0
    assert "column1" not in capsys.readouterr().out
