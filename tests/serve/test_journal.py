"""The journal file: what is read back, what is cut, what is reported."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from varifold.serve.core.errors import JournalError, StateError
from varifold.serve.core.journal import LEARN, RESTORE, Journal, JournalReader, Record, pack_frame


def _written(folder: Path, frames: int = 3) -> Path:
    journal = Journal(folder, 1)
    for i in range(frames):
        journal.write(pack_frame(2 * i + 1, 1000 + i, [Record(LEARN, b"a" * 50), Record(LEARN, b"b%d" % i)]))
    journal.close()
    return journal.path


def test_frames_come_back(tmp_path: Path) -> None:
    frames = list(JournalReader(_written(tmp_path)).frames())
    assert [(f.first, f.time) for f in frames] == [(1, 1000), (3, 1001), (5, 1002)]
    assert frames[2].records == [Record(LEARN, b"a" * 50), Record(LEARN, b"b2")]


def test_every_torn_tail_is_cut(tmp_path: Path) -> None:
    path = _written(tmp_path)
    whole = path.read_bytes()
    ends = [0]
    reader = JournalReader(path)
    for _ in reader.frames():
        ends.append(reader.end)
    for size in range(ends[2] + 1, len(whole)):
        path.write_bytes(whole[:size])
        reader = JournalReader(path)
        assert len(list(reader.frames())) == 2
        assert reader.torn == size - ends[2]
        reader.cut()
        assert path.read_bytes() == whole[: ends[2]]


def test_a_tail_of_zeros_is_torn(tmp_path: Path) -> None:
    path = _written(tmp_path)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes(700))
    reader = JournalReader(path)
    assert len(list(reader.frames())) == 3
    assert (reader.end, reader.torn) == (size, 700)


def _last_frame(folder: Path, kind: int = LEARN) -> tuple[Path, int, bytes]:
    """A journal whose last frame spans many sectors; its path, where that frame starts, and the content."""
    journal = Journal(folder, 1)
    journal.write(pack_frame(1, 1000, [Record(LEARN, b"a" * 50)]))
    start = journal.size
    journal.write(pack_frame(2, 1001, [Record(kind, b'{"x": {"sensor": 1.25}, "y": "up"}' * 200)]))
    journal.close()
    return journal.path, start, journal.path.read_bytes()


@pytest.mark.parametrize("seed", range(30))
def test_a_last_frame_with_sectors_that_were_never_written_is_cut(tmp_path: Path, seed: int) -> None:
    path, start, whole = _last_frame(tmp_path)
    rng = random.Random(seed)
    torn = bytearray(whole)
    sectors = range(start // 512, -(-len(whole) // 512))
    for sector in rng.sample(sectors, rng.randrange(1, len(sectors) + 1)):
        first, end = max(start, 512 * sector), min(len(whole), 512 * sector + 512)
        torn[first:end] = bytes(end - first)
    path.write_bytes(torn)
    reader = JournalReader(path)
    assert [f.first for f in reader.frames()] == [1]
    assert (reader.end, reader.torn) == (start, len(whole) - start)


def test_a_sector_of_zeros_before_another_frame_is_damage(tmp_path: Path) -> None:
    path, start, whole = _last_frame(tmp_path)
    sector = start // 512 + 2
    later = pack_frame(3, 1002, [Record(LEARN, b"b")])
    path.write_bytes(whole[: 512 * sector] + bytes(512) + whole[512 * sector + 512 :] + later)
    with pytest.raises(StateError, match=f"damaged at offset {start}:"):
        list(JournalReader(path).frames())


def test_zeros_in_a_model_file_are_no_sign_of_a_torn_write(tmp_path: Path) -> None:
    path, start, whole = _last_frame(tmp_path, RESTORE)
    sector = start // 512 + 2
    path.write_bytes(whole[: 512 * sector] + bytes(512) + whole[512 * sector + 512 :])
    with pytest.raises(StateError, match=f"damaged at offset {start}:"):
        list(JournalReader(path).frames())


def test_a_flipped_byte_in_a_long_last_frame_is_reported(tmp_path: Path) -> None:
    path, start, whole = _last_frame(tmp_path)
    for at in range(start, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with pytest.raises(StateError, match=f"damaged at offset {start}:"):
            list(JournalReader(path).frames())


def test_every_flipped_byte_is_reported_with_file_and_offset(tmp_path: Path) -> None:
    path = _written(tmp_path)
    whole = path.read_bytes()
    reader = JournalReader(path)
    starts = [reader.end]
    for _ in reader.frames():
        starts.append(reader.end)
    for at in range(starts[0], len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        begin = max(s for s in starts if s <= at)
        with pytest.raises(StateError, match=rf"journal-00000001\.log is damaged at offset {begin}:"):
            list(JournalReader(path).frames())


def test_a_damaged_header_is_reported(tmp_path: Path) -> None:
    path = _written(tmp_path)
    whole = path.read_bytes()
    for at in range(JournalReader(path).end):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StateError, match=r"damaged|no journal"):
            JournalReader(path)


def test_a_full_disk_is_a_journal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, 1)

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with pytest.raises(JournalError, match=r"No space left on device.*takes no more changes"):
        journal.write(b"frame")
