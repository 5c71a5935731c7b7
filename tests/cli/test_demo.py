"""The demonstration shows what it says: less error than filling, in the outages and after the replacement."""

import json

import numpy as np
import pytest

from varifold.cli import main
from varifold.cli.demo import _peers
from varifold.cli.filling import carried, mean_filled, zero_filled
from varifold.cli.sensors import GROUPS, plant


def test_table_and_picture_show_every_way_and_peer(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "demo.svg"
    assert main(["demo", "--model", "arow", "--plot", str(path)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line[-1:].isdigit()]
    names = [line.split("  ")[0] for line in lines if "label" not in line]
    assert names == [
        "absent stays absent",
        "zeros filled in",
        "means filled in, fixed columns",
        "means filled in",
        "last values carried forward",
        *_peers(),
    ]
    picture = path.read_text()
    assert all(f"%  {name} -->" in picture for name in names)


@pytest.mark.parametrize("model", ["arow", "olvf"])
@pytest.mark.parametrize("seed", ["7", "8"])
def test_absence_beats_filling(capsys, tmp_path, monkeypatch, model, seed):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setattr("varifold.cli.demo._peers", dict)
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--model", model, "--seed", seed, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert "pip install '.[plot]'" in err
    ours, zeros, fixed, growing, carried_forward = json.loads(out)
    for key in ("cer", "cer_last_quarter"):
        assert ours[key] < 0.8 * zeros[key]
        assert ours[key] < 0.9 * fixed[key]
    assert ours["cer"] < 1.1 * growing["cer"]
    assert ours["cer"] < 0.5 * ours["majority_cer"]
    assert ours["made_up"] == 0 < fixed["made_up"] < growing["made_up"] == zeros["made_up"]
    assert carried_forward["made_up"] == zeros["made_up"]
    assert list(tmp_path.iterdir()) == []


def test_the_plant_is_as_described():
    made = plant(2000, seed=3)
    again = plant(2000, seed=3)
    np.testing.assert_array_equal(made.readings, again.readings)
    for group, lo, hi in made.outages():
        columns = [j for j, g in enumerate(made.groups) if g == group]
        assert np.isnan(made.readings[lo:hi, columns]).all()
        assert not np.isnan(made.readings[:, columns]).all()
    for group in GROUPS:
        columns = [j for j, g in enumerate(made.groups) if g == group.name]
        assert np.isnan(made.readings[: int(group.since * 2000), columns]).all()
        assert np.isnan(made.readings[int(group.until * 2000) :, columns]).all()
    rows = made.rows()
    assert len(rows) == len(made.labels) == 2000
    assert sum(map(len, rows)) == (~np.isnan(made.readings)).sum()


def test_filling_is_the_plain_loop():
    readings = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, 3.0], [4.0, np.nan]])
    np.testing.assert_array_equal(mean_filled(readings), [[np.nan, 1.0], [2.0, 1.0], [2.0, 3.0], [4.0, 2.0]])
    np.testing.assert_array_equal(zero_filled(readings), [[np.nan, 1.0], [2.0, 0.0], [0.0, 3.0], [4.0, 0.0]])
    np.testing.assert_array_equal(carried(readings), [[np.nan, 1.0], [2.0, 1.0], [2.0, 3.0], [4.0, 3.0]])
