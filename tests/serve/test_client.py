"""The client: a learner on a server behaves as a local one, also when the server goes away for a moment."""

from __future__ import annotations

import asyncio
import http.server
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from tests.serve.server import Server, instance
from varifold import AROW, AROWRegressor, Block
from varifold.base.learner import is_regressor
from varifold.errors import (
    DataError,
    FeatureNameError,
    FeatureValueError,
    LabelError,
    ParameterError,
    TargetError,
    UnknownNameError,
)
from varifold.evaluate import prequential
from varifold.serve import client
from varifold.serve.client import AsyncRemoteModel, RemoteClassifier, RemoteRegressor, ServerError

_numbers = itertools.count()


@pytest.fixture
def remote(shared: Server) -> Iterator[RemoteClassifier]:
    with RemoteClassifier(shared.url, f"c{next(_numbers)}", method="arow") as remote:
        yield remote


def test_as_a_local_learner(remote: RemoteClassifier) -> None:
    local = AROW()
    for i in range(40):
        x, y = instance(i).values()
        assert remote.predict_one(x) == local.predict_one(x)
        assert remote.predict_proba_one(x) == local.predict_proba_one(x)
        for learner in (remote, local):
            learner.learn_one(x, y, 0.5 + i % 2)
    assert (remote.steps, remote.classes) == (local.steps, local.classes)
    assert remote.explain_one({"f0": 1.0}) == local.explain_one({"f0": 1.0})
    rows = [instance(i)["x"] for i in range(40, 60)]
    assert remote.predict_many(rows) == local.predict_many(rows)


def test_evaluation_runs_against_a_server(remote: RemoteClassifier) -> None:
    rows = [tuple(instance(i).values()) for i in range(60)]
    assert prequential(remote, rows).cer == prequential(AROW(), rows).cer


def test_many_at_once(remote: RemoteClassifier) -> None:
    rows = [instance(i) for i in range(100)]
    remote.learn_many([r["x"] for r in rows], [r["y"] for r in rows])
    assert remote.steps == 100
    with pytest.raises(DataError, match="instance 1: column 'a' holds a list"):
        remote.learn_many([{"f0": 1.0}, {"a": [1]}], ["up", "up"])


def test_labels_may_be_a_column_of_pyarrow(remote: RemoteClassifier) -> None:
    frame = pa.table({"a": [1.0, -1.0] * 5, "y": ["up", "down"] * 5})
    remote.learn_many(frame.select(["a"]), frame["y"])
    assert remote.predict_one({"a": 1.0}) == "up"


def test_labels_of_other_types_come_back_as_they_were(remote: RemoteClassifier) -> None:
    for label in (1, 2.5):
        remote.learn_one({"a": 1.0}, label)
    assert set(remote.predict_proba_one({"a": 1.0})) == {1, 2.5}


def test_labels_later(remote: RemoteClassifier) -> None:
    given, *_ = remote.keep_one({"f0": 1.0})
    remote.label(given, "up")
    assert remote.steps == 1
    with pytest.raises(DataError, match="has its label"):
        remote.label(given, "up")


def test_errors_are_ours(remote: RemoteClassifier, shared: Server) -> None:
    with pytest.raises(DataError, match="column 'a' holds a list"):
        remote.learn_one({"a": [1]}, "up")
    with RemoteClassifier(shared.url, "nobody") as nobody, pytest.raises(UnknownNameError, match="no model 'nobody'"):
        nobody.predict_one({"a": 1.0})


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varifold.serve.client._PATIENCE", 0.3)
    with RemoteClassifier("http://127.0.0.1:9", "m") as remote, pytest.raises(ServerError, match="cannot be reached"):
        remote.predict_one({"a": 1.0})


def test_learning_goes_on_over_a_restart_and_nothing_is_learned_twice(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    remote = RemoteClassifier(server.url, "m", method="arow")
    local = AROW()
    port = server.url.rpartition(":")[2]

    def restart() -> None:
        server.kill()
        server.options = (*server.options, "--port", port)
        server.start()

    restarting = threading.Thread(target=restart)
    for i in range(60):
        if i == 30:
            restarting.start()
        x, y = instance(i).values()
        remote.learn_one(x, y)
        local.learn_one(x, y)
    restarting.join()
    assert remote.steps == 60
    assert remote.predict_proba_one({"f0": 1.0}) == local.predict_proba_one({"f0": 1.0})
    remote.close()


@pytest.mark.parametrize("label", ["NaN", "null", ""])
def test_a_label_that_the_server_takes_for_none_is_rejected(remote: RemoteClassifier, label: str) -> None:
    calls = [lambda: remote.learn_one({"a": 1.0}, label), lambda: remote.learn_many([{"a": 1.0}], [label])]
    for call in calls:
        with pytest.raises(LabelError, match="rename it"):
            call()
    assert remote.info()["steps"] == 0


def test_an_infinity_is_refused_as_a_local_learner_refuses_it(remote: RemoteClassifier) -> None:
    remote.learn_one({"a": 1.0}, "x")
    for call in (
        lambda x: remote.learn_one(x, "x"),
        remote.predict_one,
        lambda x: remote.learn_many([x], ["x"]),
    ):
        with pytest.raises(FeatureValueError, match="'a' is inf"):
            call({"a": float("inf")})
    assert remote.steps == 1


def test_a_regressor_as_a_local_one(shared: Server) -> None:
    local = AROWRegressor()
    with RemoteRegressor(shared.url, f"c{next(_numbers)}", method="arowregressor") as remote:
        rows = [(instance(i)["x"], 10.0 + i % 7) for i in range(60)]
        for x, y in rows[:30]:
            assert remote.predict_one(x) == local.predict_one(x)
            for learner in (remote, local):
                learner.learn_one(x, y, 0.5)
        assert remote.explain_one({"f0": 1.0}) == local.explain_one({"f0": 1.0})
        remote.learn_many([x for x, _ in rows[30:]], [y for _, y in rows[30:]])
        local.learn_many([x for x, _ in rows[30:]], [y for _, y in rows[30:]])
        assert remote.predict_many([x for x, _ in rows]) == local.predict_many([x for x, _ in rows])
        assert is_regressor(remote)
        assert prequential(remote, rows).mae == prequential(local, rows).mae
        steps, given = remote.steps, remote.keep_one({"f0": 1.0})[0]
        with pytest.raises(DataError, match=r"the target at step .* is 'up'"):
            remote.learn_one({"f0": 1.0}, "up")
        with pytest.raises(DataError, match=r"instance 1: the target at step .* is 'up'"):
            remote.learn_many([{"f0": 1.0}, {"f0": 2.0}], [1.0, "up"])
        assert remote.steps == steps + 1, "the row before the one refused was learned"
        remote.label(given, 3.0)
        assert remote.steps == steps + 2


def test_what_is_refused_takes_no_sequence_number(shared: Server) -> None:
    with RemoteRegressor(shared.url, f"c{next(_numbers)}", method="autoregressor") as remote:
        remote.learn_one({"a": 1.0}, 2.0)
        first = remote._post("learn", {"x": {"a": 1.0}, "y": 3.0})["seq"]
        with pytest.raises(DataError, match="target"):
            remote.learn_one({"a": 1.0}, "text")
        assert remote._post("learn", {"x": {"a": 1.0}, "y": 3.0})["seq"] == first + 1


def test_intervals_and_sets_of_a_server(shared: Server) -> None:
    params = {"coverages": [0.5, 0.9]}
    with (
        RemoteRegressor(shared.url, f"c{next(_numbers)}", method="arowregressor", params=params) as numbers,
        RemoteClassifier(shared.url, f"c{next(_numbers)}", method="arow", params=params) as labels,
    ):
        regressor, classifier = AROWRegressor(coverages=(0.5, 0.9)), AROW(coverages=(0.5, 0.9))
        assert numbers.predict_interval_one({"f0": 1.0}) == (-math.inf, math.inf)
        for i in range(60):
            x, y = instance(i).values()
            for learner in (labels, classifier):
                learner.learn_one(x, y)
            for learner in (numbers, regressor):
                learner.learn_one(x, float(i % 7))
        for coverage in (0.5, 0.9):
            assert numbers.predict_interval_one(x, coverage) == regressor.predict_interval_one(x, coverage)
            assert labels.predict_set_one(x, coverage) == classifier.predict_set_one(x, coverage)
        with pytest.raises(ParameterError, match=r"has no coverage 0\.7, only 0\.5, 0\.9"):
            numbers.predict_interval_one(x, 0.7)


def test_a_client_for_numbers_makes_a_regressor(shared: Server) -> None:
    name = f"c{next(_numbers)}"
    with RemoteRegressor(shared.url, name, method="arow") as remote:
        assert remote.info()["method"] == "arowregressor"
        with pytest.raises(TargetError, match="pass a finite number"):
            remote.learn_one({"f0": 1.0}, math.inf)
        for coverage in (None, "0.9", 1.0, True):
            with pytest.raises(ParameterError, match="above 0 and below 1"):
                remote.predict_interval_one({"f0": 1.0}, coverage)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="exists, and its method arowregressor is for regression"):
        RemoteClassifier(shared.url, name, method="arow")
    with pytest.raises(ParameterError, match="'nb3' is not for regression"):
        RemoteRegressor(shared.url, f"c{next(_numbers)}", method="nb3")
    with pytest.raises(ParameterError, match="'arowregressor' is not for classification"):
        RemoteClassifier(shared.url, f"c{next(_numbers)}", method="arowregressor")


def test_learners_by_key_and_input_rules(shared: Server) -> None:
    name = f"m{next(_numbers)}"
    with RemoteClassifier(shared.url, name, method="arow", key="device", input={"time": "ts"}) as remote:
        for i in range(20):
            for device, labels in (("a", ("low", "high")), ("b", ("high", "low"))):
                remote.learn_one({"device": device, "load": i % 2, "ts": "2026-01-01T00:00:00"}, labels[i % 2])
        assert [remote.predict_one({"device": d, "load": 1}) for d in "ab"] == ["high", "low"]
        given, *_ = remote.keep_one({"device": "a", "load": 1})
        remote.label(given, "high")
        assert remote.steps == 41


def test_reopening_with_another_method_or_key_is_an_error(shared: Server) -> None:
    name = f"m{next(_numbers)}"
    RemoteClassifier(shared.url, name, method="arow").close()
    RemoteClassifier(shared.url, name, method="arow").close()
    with pytest.raises(ParameterError, match="exists already, with the method 'arow' and not 'olvf'"):
        RemoteClassifier(shared.url, name, method="olvf")
    with pytest.raises(ParameterError, match="with the key None and not 'device'"):
        RemoteClassifier(shared.url, name, method="arow", key="device")
    with pytest.raises(ParameterError, match=r"with the input \{\} and not \{'time': 'ts'\}; use input=\{\}"):
        RemoteClassifier(shared.url, name, method="arow", input={"time": "ts"})


def test_reopening_with_the_same_input_is_no_error(shared: Server) -> None:
    rules = {"ignore": ["b", "a"], "flatten": True, "time": None, "dates": {"day": ["weekday", "hour"]}}
    made = {"method": "arow", "key": "device", "ask": {"budget": 0.1}}
    for _ in range(2):
        RemoteClassifier(shared.url, "same-input", input=rules, **made).close()
    RemoteClassifier(shared.url, "same-input", **made).close()


@pytest.mark.parametrize(
    "input",
    [
        {"ask": {"budget": 0.1}},
        {"dates": {"day": ("hour", "weekday")}},
        {"ignore": ("b", "a", "a")},
        {"key": "device"},
        {"types": {"z": "numeric"}, "notations": {"z": (",", ".", "")}},
    ],
    ids=["ask", "dates", "ignore", "key", "notations"],
)
def test_input_that_the_server_shows_in_another_form_makes_a_model_and_reopens_it(
    shared: Server, input: dict[str, Any]
) -> None:
    name = f"m{next(_numbers)}"
    for _ in range(2):
        RemoteClassifier(shared.url, name, method="arow", input=input).close()

    async def again() -> None:
        async with AsyncRemoteModel(shared.url, name) as model:
            await model.make("arow", input=input)

    asyncio.run(again())


def test_reopening_with_another_bound_of_keys_or_policy_is_an_error(shared: Server) -> None:
    name = f"m{next(_numbers)}"
    RemoteClassifier(shared.url, name, method="arow", key="device", ask={"budget": 0.1}).close()
    with pytest.raises(ParameterError, match="with the max_keys None and not 5; use max_keys=None"):
        RemoteClassifier(shared.url, name, method="arow", key="device", max_keys=5)
    with pytest.raises(ParameterError, match=r"with the ask \{'budget': 0.1"):
        RemoteClassifier(shared.url, name, method="arow", key="device", ask={"budget": 0.2})
    RemoteClassifier(shared.url, name, method="arow", key="device").close()
    bounded = f"m{next(_numbers)}"
    for options in ({"max_keys": 5}, {}):
        RemoteClassifier(shared.url, bounded, method="arow", key="device", **options).close()


def test_many_requests_at_a_time(shared: Server) -> None:
    name = f"m{next(_numbers)}"

    async def main() -> None:
        async with AsyncRemoteModel(shared.url, name, connections=8) as model:
            await model.make("arow")
            with pytest.raises(ParameterError, match="exists already"):
                await model.make("olvf")
            await asyncio.gather(*(model.learn_one({"load": i % 2}, ("low", "high")[i % 2]) for i in range(100)))
            assert await model.predict_one({"load": 1}) == "high"
            given, label, _ = await model.keep_one({"load": 0})
            assert label == "low"
            await model.label(given, "low")
            with pytest.raises(DataError, match="has its label"):
                await model.label(given, "low")
            assert (await model.info())["steps"] == 101

    asyncio.run(main())


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, pd.DataFrame], ids=["array", "matrix", "numbered"])
def test_many_instances_without_names_of_features(shared: Server, make: Callable[[Any], Any]) -> None:
    X = make(np.array([[1.0, 0.0], [0.0, 2.0]] * 20))
    with RemoteClassifier(shared.url, f"m{next(_numbers)}", method="arow") as remote:
        remote.learn_many(X, np.array([0, 1] * 20))
        assert remote.predict_many(X[:2]) == [0, 1]
        assert sorted(remote._request("GET", f"{remote._path}/features").json()["features"]) == ["0", "1"]
        with pytest.raises(FeatureNameError, match="two columns have the same name on the server"):
            remote.learn_many(Block.from_dicts([{1: 1.0, "1": 2.0}]), [0])


def test_many_instances_of_a_frame(shared: Server) -> None:
    frame = pd.DataFrame({"load": [0.0, 1.0, None] * 20, "valve": ["open", "shut", "open"] * 20})
    with RemoteClassifier(shared.url, f"m{next(_numbers)}", method="arow") as remote:
        remote.learn_many(frame, ["low", "high", "low"] * 20)
        assert remote.predict_many(frame.head(2)) == ["low", "high"]
        assert sorted(remote._request("GET", f"{remote._path}/features").json()["features"]) == [
            "load", "valve=open", "valve=shut",
        ]  # fmt: skip


class _Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.3)
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_more_requests_than_connections_wait_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue takes longer than a request may, and longer than requests are repeated."""
    monkeypatch.setattr(client, "_PATIENCE", 0.5)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()

        async def main() -> None:
            url = f"http://127.0.0.1:{slow.server_port}"
            async with AsyncRemoteModel(url, "m", connections=1, timeout=1.0) as model:
                await asyncio.gather(*(model.learn_one({"load": 1}, "high") for _ in range(8)))

        asyncio.run(main())
        slow.shutdown()


def test_an_address_without_a_scheme_is_an_error_at_once_and_a_token_may_end_with_a_line_feed(shared: Server) -> None:
    started = time.monotonic()
    with pytest.raises(ServerError, match="missing an 'http://' or 'https://' protocol"):
        RemoteClassifier(shared.url.removeprefix("http://"), "m", method="arow")
    RemoteClassifier(shared.url, f"m{next(_numbers)}", method="arow", token="some-token-of-a-file\n").close()
    assert time.monotonic() - started < 10
