"""The column of the key, as `run --key` needs it: every row has it, or is said to lack it."""

import pytest

from varifold import streams
from varifold.cli import main
from varifold.errors import DataError, ParameterError

ROWS = [
    {"device": "a", "t": 1.0, "y": "up"},
    {"device": None, "t": 2.0, "y": "up"},
    {"device": "b", "t": 3.0, "y": "no"},
]


def csv(folder, name="device"):
    lines = [f"{name},t,y", *(f"{row['device'] or ''},{row['t']},{row['y']}" for row in ROWS * 5)]
    (folder / "rows.csv").write_text("\n".join(lines))
    return str(folder / "rows.csv")


def jsonl(folder, name="device"):
    lines = [f'{{"{name}": "{row["device"] or "NA"}", "t": {row["t"]}, "y": "{row["y"]}"}}' for row in ROWS * 5]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return str(folder / "rows.jsonl")


def frame(folder, name="device"):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame([{name if k == "device" else k: v for k, v in row.items()} for row in ROWS * 5])


@pytest.mark.parametrize(
    ("make", "where"), [(csv, "rows.csv, line 3"), (jsonl, "rows.jsonl, line 2"), (frame, "the data frame, line 2")]
)
def test_a_row_without_its_key_is_named_or_skipped(tmp_path, make, where):
    data = make(tmp_path)
    with pytest.raises(DataError, match=rf"{where}.*no key .*--on-error skip"):
        list(streams.read(data, target="y", key="device").blocks())
    stream = streams.read(data, target="y", key="device", on_error="skip")
    found = [row for block in stream.blocks() for row in block.rows()]
    assert [row["device"] for row in found] == ["a", "b"] * 5
    assert stream.skipped == 5
    assert "no key" in stream.problems[0]
    assert sum(len(block) for block in streams.read(data, target="y").blocks()) == 15


@pytest.mark.parametrize("make", [csv, jsonl, frame])
def test_a_key_that_no_column_has(tmp_path, make):
    stream = streams.read(make(tmp_path, "devise"), target="y", key="device")
    with pytest.raises(DataError, match=r"device'.*did you mean devise\?"):
        list(stream.blocks())


@pytest.mark.parametrize("option", ["target", "id", "time", "weight"])
def test_the_key_is_a_feature(option):
    with pytest.raises(ParameterError, match=f"as key and as {option}"):
        streams.read(ROWS, **{"target": "y", option: "device"}, key="device")
    with pytest.raises(ParameterError, match="as key and as ignore"):
        streams.read(ROWS, target="y", ignore=["device"], key="device")


def test_on_the_command_line(tmp_path, capsys):
    path, model = csv(tmp_path), str(tmp_path / "m")
    learn = ["run", path, "--target", "y", "--model", "arow", "--save", model]
    assert main([*learn, "--key", "devise"]) == 1
    assert "has no key column 'devise'; its columns are: device, t, y; did you mean device?" in capsys.readouterr().err
    assert main([*learn, "--key", "device"]) == 1
    assert "rows.csv, line 3, column 'device': no key here" in capsys.readouterr().err
    assert main([*learn, "--key", "device", "--on-error", "skip"]) == 0
    assert "skipped: " in capsys.readouterr().err
    for again in (["predict", model, path], ["run", path, "--load", model]):
        assert main(again) == 1
        assert "line 3, column 'device': no key here" in capsys.readouterr().err
        assert main([*again, "--on-error", "skip"]) == 0
        capsys.readouterr()
