"""Each way into the library as a function of bytes, for a fuzzer that follows coverage.

A harness returns if the library accepts the bytes, or rejects them in its own words. It raises on all else: another
exception, or a state that a rejected call changed. The corpora to begin from are files of tests/data, and texts.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import varifold
from varifold import streams
from varifold.base import files
from varifold.base.json_text import write_json
from varifold.base.spec import parse_model
from varifold.checks.material import is_regressor, state
from varifold.errors import VarifoldError
from varifold.serve.core import learners, snapshot
from varifold.serve.core.database import Database
from varifold.serve.core.state import Limits, ModelState
from varifold.serve.http.app import find

DATA = Path(__file__).parents[2] / "data"
LARGEST = 1 << 16
"""Bytes of one input: beyond that the time goes into reading, not into new paths."""


@cache
def folder() -> Path:
    """Return a temporary folder, in memory where the system has one."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="varifold-guided-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


# ---------------------------------------------------------------- model files


def signed(data: bytes) -> bytes:
    """Set the digest that the changed content needs, so that it is read and not just compared."""
    at = files._digest_place(data)
    if at < 0 or len(data) < at + files._DIGEST:
        return data
    return data[:at] + files._digest(data, at) + data[at + files._DIGEST :]


def model_file(data: bytes) -> None:
    """Load a model file whose digest is right, use the learner, and save it again.

    Numbers of 1e299, which no stream leads to, may become infinite while it learns; then it cannot be loaded again.
    """
    try:
        learner: Any = varifold.from_bytes(signed(data))
        for step in range(3):
            x = {"a": 0.5 * step, "f1": 1.0, "new": -2.0, "colour": "red"}
            for call in (
                "predict_one",
                "score_one",
                "explain_one",
            ):  # detectors predict nothing, a Vote explains nothing
                if hasattr(learner, call):
                    getattr(learner, call)(x)
            labelled = hasattr(learner, "predict_one")
            learner.learn_one(x, *([float(step) if is_regressor(learner) else "ab"[step % 2]] if labelled else []))
        varifold.from_bytes(learner.to_bytes())
    except VarifoldError:
        return


# ---------------------------------------------------------------- readers


def read_as(ending: str, **options: Any) -> Callable[[bytes], None]:
    """Return a harness that reads its bytes as a file with this ending, with and without a target, and learns it."""

    def harness(data: bytes) -> None:
        path = folder() / f"input{ending}"
        path.write_bytes(data)
        for how in ({"target": "y"}, {"on_error": "skip"}):
            try:
                for batch in streams.read([str(path)], **options, **how).batches():
                    assert len(batch.block) >= 0
                    list(batch.block.rows())
            except VarifoldError:
                continue

    return harness


# ---------------------------------------------------------------- specifications


def specification(data: bytes) -> None:
    """Make the learner that a text describes, and let it learn; no text may import a module."""
    before = set(sys.modules)
    try:
        learner: Any = parse_model(data.decode("utf-8", "surrogateescape"))()
        learner.learn_one({"a": 1.0, "b": "x"}, 1.0 if is_regressor(learner) else "p")
    except VarifoldError:
        learner = None
    imported = {name for name in set(sys.modules) - before if not name.startswith("varifold")}
    assert not imported & {"this", "antigravity", "evil"}, f"imported {imported}"
    if learner is not None:
        varifold.from_bytes(learner.to_bytes())


# ---------------------------------------------------------------- the server


@cache
def served() -> Any:
    return ModelState("m", learners.make("arow", {"max_features": 50}), Limits())


def http_body(data: bytes) -> None:
    """Apply the body of a request; the first byte chooses one of the routes. What is rejected changes nothing."""
    model = served()
    before = (state(model.learner), model.seq, len(model.waiting))
    try:
        if data[:1] == b"/":
            find("POST", data.decode("latin-1"))
        else:
            model.apply(*model.rules.parse_row(data))
            model.take_unwritten()
            return
    except VarifoldError:
        pass
    assert (state(model.learner), model.seq, len(model.waiting)) == before, "a rejected body changed the state"


@cache
def stored() -> dict[str, bytes]:
    """Return the files of a store with a model that has learned and keeps instances."""
    path = folder() / "first"
    database = Database.open(path)
    model = ModelState("m", learners.make("arow", {}), Limits())
    model.id = database.add_model("m", model.incarnation, snapshot.split(model.parts())).id
    for i in range(12):
        body: dict[str, Any] = {"x": {"a": i % 5, "b": i % 3}, "id": f"i{i}"}
        body |= {"keep": True} if i % 4 == 3 else {"y": "pq"[i % 2]}
        model.apply(body, write_json(body))
        written = model.take_unwritten()
        assert written is not None
        database.commit([written])
    database.close()
    return {each.name: each.read_bytes() for each in path.iterdir()}


@cache
def expected() -> str:
    return loaded(stored())


def loaded(content: dict[str, bytes]) -> str:
    path = folder() / "store"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in content.items():
        (path / name).write_bytes(data)
    database = Database(path)
    try:
        models = [ModelState.load(database, row, Limits())[0] for row in database.models()]
        return " ".join(f"{each.name} {each.seq} {learners.digest(each.learner)}" for each in models)
    finally:
        database.close()


def store(data: bytes) -> None:
    """Change bytes of a store's database: triples of place (two bytes) and value. It is reported, or harmless."""
    whole = dict(stored())
    changed = bytearray(whole["state.db"])
    for at in range(0, min(len(data), 300) - 2, 3):
        place = int.from_bytes(data[at : at + 2], "little") % len(changed)
        changed[place] = data[at + 2]
    whole["state.db"] = bytes(changed)
    try:
        found = loaded(whole)
    except VarifoldError:
        return
    assert found == expected(), "a damaged store was read as something else"


# ---------------------------------------------------------------- what to begin from


def of_ending(*endings: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(DATA.iterdir()) if path.suffix in endings]


SPECIFICATIONS = [
    "arow", "olvf:C=0.5", "ovfiv:base=(arow:r=2)", "auto:budget=fast", "ovfiv:base=this:K", "this:K", "orf3v:grace=5",
    "arow:scale=robust,max_features=3", "windowforest:trees=3,window=50", "arow:coverages=(0.5,0.9)", "auto@paper",
]  # fmt: skip
BODIES = [
    '{"x": {"a": 1.5, "b": "red"}, "y": "p"}', '{"x": {"a": 1e999}}', '{"x": {"a": NaN}, "y": 1, "w": 0.5}',
    '{"x": {}, "keep": true, "id": "i1"}', '{"id": "i1", "y": "q"}', '{"x": {"a": null}, "predict": true, "y": true}',
    "/models/m/learn", "/labels/m.000000.1", '{"x": {"a": 10000000000000000000000}}', "[1]", '{"x": {"a": [1]}}',
]  # fmt: skip
HARNESSES: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "model": (model_file, lambda: [path.read_bytes() for path in sorted((DATA / "models").glob("*.safetensors"))]),
    "csv": (read_as(".csv"), lambda: of_ending(".csv", ".tsv")),
    "json": (read_as(".jsonl"), lambda: of_ending(".jsonl")),
    "arff": (read_as(".arff"), lambda: of_ending(".arff")),
    "svmlight": (read_as(".svm"), lambda: of_ending(".svm")),
    "specification": (specification, lambda: [text.encode() for text in SPECIFICATIONS]),
    "http": (http_body, lambda: [text.encode() for text in BODIES]),
    "store": (store, lambda: [b"", b"\x10\x00\xff", b"\x64\x10\x01\x65\x10\x02"]),
}
