"""Pictures on their way to a file."""

import errno

import pytest

from varifold.report import style


def test_a_picture_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    figure = style.pyplot().figure()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(figure, "savefig", full)
    with pytest.raises(OSError, match=r"x\.png") as caught:
        style.write(figure, tmp_path / "x.png")
    assert caught.value.filename == str(tmp_path / "x.png")
    assert not style.pyplot().fignum_exists(figure.number)
