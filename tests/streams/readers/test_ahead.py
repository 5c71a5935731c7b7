"""Batches that a thread makes ahead are those that come without it, at every moment."""

import gc
import itertools
import threading

import pytest

from varifold import AROW, evaluate
from varifold.errors import DataError
from varifold.streams import read
from varifold.streams.readers import ahead, csv


@pytest.fixture
def pieces(monkeypatch):
    """Files of some kilobytes are read in many pieces, as large ones are."""
    monkeypatch.setattr(csv, "_READ", 2048)


@pytest.fixture
def path(tmp_path):
    """New columns of levels, words and labels come along the way."""
    file = tmp_path / "t.csv"
    rows = (f"{i},{i * 0.37 % 5:.3f},level {i // 300},{'abcdef'[i // 500 % 6] if i % 3 else 'a'}" for i in range(3000))
    file.write_text("i,x,kind,y\n" + "\n".join(rows) + "\n")
    return file


def in_line(monkeypatch):
    monkeypatch.setattr(csv, "read_ahead", lambda first, batches, before_new: itertools.chain([first], batches))


def threads():
    return [thread for thread in threading.enumerate() if thread.name == ahead.NAME]


def history(path, **options):
    """What a loop sees at every block, and whether a thread was at work."""
    stream = read(path, target="y", block_rows=100, **options)
    seen, ran = [], False
    for block in stream.blocks():
        ran = ran or bool(threads())
        seen.append((list(block.rows()), block.y, block.vocabulary.size, list(stream.labels.values), stream.skipped))
    return seen, ran


def test_names_labels_and_problems_are_those_of_the_moment(pieces, path, monkeypatch):
    text = path.read_text().splitlines()
    text[1234] = "1,2"
    text[2345] = "too,many,cells,in,this"
    path.write_text("\n".join(text))
    found, ran = history(path, on_error="skip")
    assert ran
    assert not threads()
    in_line(monkeypatch)
    expected, ran = history(path, on_error="skip")
    assert not ran
    assert found == expected
    assert found[-1][-1] == 2


def test_a_learner_ends_in_the_same_state(pieces, path, monkeypatch):
    ours, theirs = AROW(), AROW()
    result = evaluate.prequential(ours, read(path, target="y", block_rows=100))
    in_line(monkeypatch)
    assert evaluate.prequential(theirs, read(path, target="y", block_rows=100)).errors == result.errors
    assert ours.features == theirs.features


def test_an_error_comes_after_the_blocks_before_it_and_names_its_line(pieces, path):
    text = path.read_text().splitlines()
    text[2000] = "1,2"
    path.write_text("\n".join(text))
    lengths = []
    with pytest.raises(DataError, match=r"t\.csv, line 2,001: 2 cells where the header has 4"):
        lengths.extend(map(len, read(path, target="y", block_rows=100).blocks()))
    assert sum(lengths) == 1999, "the rows before the bad one come, too"
    assert not threads()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_no_thread_is_left_when_a_loop_stops_early(pieces, path, error):
    def stop_at_the_fourth():
        for number, _ in enumerate(read(path, target="y", block_rows=100).blocks()):
            if number == 3:
                assert threads()
                raise error

    with pytest.raises(error):
        stop_at_the_fourth()
    gc.collect()  # the traceback held the loop
    assert not threads()


@pytest.mark.parametrize("taken", [1, 2])
def test_an_abandoned_stream_stops_its_thread(pieces, path, taken):
    blocks = read(path, target="y", block_rows=100).blocks()
    for _ in range(taken):
        next(blocks)
    assert threads(), "the second block is read while the first is worked on"
    del blocks
    assert not threads()


def test_whatever_is_raised_in_the_thread_is_raised_in_the_loop(pieces, path, monkeypatch):
    class Odd(BaseException):
        pass

    made = []

    def fail(reader, real=csv._Reader._batch):
        made.append(threading.current_thread().name)
        if len(made) == 5:
            raise Odd("from the thread")
        return real(reader)

    monkeypatch.setattr(csv._Reader, "_batch", fail)
    with pytest.raises(Odd, match="from the thread"):
        list(read(path, target="y", block_rows=100).blocks())
    assert made[-1] == ahead.NAME
    assert not threads()


def test_numbers_to_predict_are_read_ahead(pieces, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i * 0.25}\n" for i in range(3000)))
    targets, ran = [], False
    for block in read(path, target="y", block_rows=100).blocks():
        ran = ran or bool(threads())
        targets += block.targets.tolist()
    assert ran
    assert targets == [i * 0.25 for i in range(3000)]


def test_small_files_need_no_thread(path):
    for _ in read(path, target="y", block_rows=100).blocks():
        assert not threads()
