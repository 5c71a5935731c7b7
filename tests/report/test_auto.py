import pytest

import varifold
from varifold.report.auto import draw_report


def test_the_report_becomes_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    model = varifold.AutoClassifier(budget="fast")
    for t in range(300):
        model.learn_one({"a": t % 7, "b": t % 3, "c": "xyz"[t % 3]}, t % 7 > 3)
    target = tmp_path / "report.png"
    draw_report(model.report(), target)
    assert target.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
