"""Downloads against a server on this machine: good, wrong, broken, slow and absent responses."""

import hashlib
import http.server
import threading
import time

import pytest

from varifold import datasets
from varifold.datasets.fetch import fetch_file
from varifold.datasets.files import content
from varifold.datasets.registry import Entry, File
from varifold.errors import DataError

pytest.importorskip("pooch")
GOOD = b"1,2,3\n" * 1000
ENTRY = Entry("toy", "A toy", 1000, 2, 2, "numbers", "table", "none", "nobody")


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing.csv":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(GOOD)))
        self.end_headers()
        if self.path == "/slow.csv":
            self.server.released.wait(10)
        elif self.path == "/broken.csv":
            self.wfile.write(GOOD[:100])
        else:
            self.wfile.write(GOOD if self.path == "/good.csv" else GOOD[::-1])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("VARIFOLD_DATA", raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    served.released = threading.Event()
    served.daemon_threads = True
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.released.set()
    served.shutdown()
    thread.join()
    served.server_close()


def toy(server, name):
    return File(f"toy/{name}.gz", hashlib.sha256(GOOD).hexdigest(), f"{server}/{name}")


def kept(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_good_response_is_kept_and_found_again(server, tmp_path):
    file = toy(server, "good.csv")
    path = fetch_file(ENTRY, file)
    assert path == tmp_path / "cache" / "varifold" / "toy" / "good.csv"
    assert content(ENTRY, file, path) == GOOD
    assert kept(tmp_path) == [path]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong.csv", "has another sha256 than the registry"),
        ("broken.csv", "cannot be fetched: "),
        ("missing.csv", "the server returned 404 Not Found"),
    ],
)
def test_a_bad_response_leaves_nothing_behind(server, tmp_path, name, words):
    with pytest.raises(DataError, match=words) as caught:
        fetch_file(ENTRY, toy(server, name))
    assert "data set 'toy'" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert kept(tmp_path) == []


def test_a_slow_response_is_abandoned(server, tmp_path):
    start = time.monotonic()
    with pytest.raises(DataError, match=r"did not respond within 0\.2 s"):
        fetch_file(ENTRY, toy(server, "slow.csv"), timeout=0.2)
    assert time.monotonic() - start < 8
    assert kept(tmp_path) == []


def test_no_server_is_one_line(server, tmp_path):
    with pytest.raises(DataError, match=r"cannot be fetched: ConnectionError \(.*refused") as caught:
        fetch_file(ENTRY, File("toy/x", "0" * 64, "http://127.0.0.1:9/x"))
    assert "\n" not in str(caught.value)
    assert kept(tmp_path) == []


def test_sets_without_a_checked_download_say_what_to_do(server):
    with pytest.raises(DataError, match="'hapt' has no verified download; get it from https://"):
        datasets.fetch("hapt")
    with pytest.raises(DataError, match="'credit-g' has no verified download"):
        datasets.fetch("credit-g")
    assert datasets.fetch("synthetic") == []


def test_scikit_learn_carries_two_sets(server):
    pytest.importorskip("sklearn")
    wine, wdbc = datasets.load("wine"), datasets.load("wdbc")
    assert (len(wine.block), len(wdbc.block)) == (178, 569)
    assert wdbc.block.labels.values == ["B", "M"]
    assert datasets.where(wine.entry) == "scikit-learn"
    assert wdbc.block.row(0)["mean_radius"] == 17.99


def test_every_file_with_an_address_has_a_checksum():
    for name in datasets.names():
        for file in datasets.find(name).files:
            assert len(file.sha256) == 64
            assert file.url is None or file.url.startswith("https://")
