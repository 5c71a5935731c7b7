"""Hostile requests: sizes, encodings, 1e999, deep JSON, wrong tokens, odd paths. No 500, and the state as it was.

python -m benchmarks.serve.http_fuzz [--requests 100000] [--seed 0]
"""

from __future__ import annotations

import argparse
import http.client
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from benchmarks.serve.process import Process, instance

GOOD = "Bearer " + "w" * 24
PATHS = [
    "/models/m/learn",
    "/models/m/predict",
    "/models/m/batch",
    "/models/m/explain",
    "/models/m/labels",
    "/models/m/restore",
    "/models/m",
    "/models/%2e%2e%2fetc",
    "/models/..%2f..",
    "/models/" + "a" * 3000,
    "/models/m\u00e9",
    "/labels/m.000000.1",
    "/labels/" + "9" * 400,
    "/labels/m.zz.-1",
    "/models//learn",
    "//models",
    "/",
    "/%00",
    "/models/m/features?key=%ff",
    "/events/x",
]
METHODS = ["POST"] * 8 + ["PUT", "GET", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW"]
NUMBERS = ["1e999", "-1e999", "nan", "Infinity", "1" * 400, "0." + "3" * 300, "1e-999", "-0", "1_0", "0x10", "+1", "01"]
REFUSED = {400, 401, 403, 404, 405, 409, 410, 413, 422}


def _json(rng: random.Random, depth: int = 0) -> str:
    """Generate JSON of all kinds, occasionally broken."""
    kind = rng.randrange(10 if depth < 6 else 6)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind < 5:
        return rng.choice(
            ['"a"', '"\\ud800"', '""', "null", "true", '"' + "z" * rng.choice([1, 300, 9000]) + '"', "1.5"]
        )
    if kind == 5:
        return rng.choice(["{", "[", "}", '"', "", "\\", "\x00"])
    if kind < 8:
        return "[" + ",".join(_json(rng, depth + 1) for _ in range(rng.randrange(4))) + "]"
    names = ["x", "y", "w", "id", "keep", "key", "predict", "a", "", "\\u0000", "method"]
    parts = (f'"{rng.choice(names)}":{_json(rng, depth + 1)}' for _ in range(rng.randrange(5)))
    return "{" + ",".join(parts) + "}"


def _body(rng: random.Random) -> bytes:
    """Generate a body that must be rejected: never a valid instance, label or model."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.randbytes(rng.choice([0, 1, 50, 5000]))
    if kind == 1:
        return b"[" * rng.choice([10, 1000, 100_000])
    if kind == 2:
        return b'{"x":' * rng.choice([5, 2000]) + b"1"
    if kind == 3:
        return b'{"x":{"a":' + rng.choice(NUMBERS[:4]).encode() + b'},"y":"up"}'
    if kind == 4:
        return b'{"x":{"a":[1]},"y":"up"}'
    if kind == 5:
        return b'{"x":{"' + b"n" * rng.choice([10, 2_000_000]) + b'":[{}]},"y":1}'
    if kind == 6:
        return orjson.dumps(instance(rng))[: rng.randrange(1, 100)]
    if kind == 7:
        return '{"x":{"caf\u00e9":1},"y":"\u00fc"}'.encode(rng.choice(["utf-16", "latin-1"]))
    return b'{"unknown":' + _json(rng).encode("utf-8", "replace") + b"}"


def _headers(rng: random.Random) -> dict[str, str]:
    found = {"authorization": GOOD}
    if rng.random() < 0.2:
        found["authorization"] = rng.choice(
            ["", "Bearer", "Bearer x", "Basic " + "w" * 24, "Bearer " + "w" * 23, "x" * 5000]
        )
    if rng.random() < 0.1:
        found["content-type"] = rng.choice(["text/html", "application/x-www-form-urlencoded", "multipart/form-data"])
    if rng.random() < 0.05:
        found["host"] = rng.choice(["evil.example", "", "127.0.0.1:1"])
    return found


class Fuzz:
    """Counts the responses and keeps those that are not proper rejections."""

    def __init__(self, url: str) -> None:
        self.place = url.removeprefix("http://")
        self.connection = http.client.HTTPConnection(self.place, timeout=20)
        self.statuses: Counter[int] = Counter()
        self.wrong: list[Any] = []

    def one(self, rng: random.Random) -> None:
        method, path = rng.choice(METHODS), rng.choice(PATHS)
        body = None if method in ("GET", "HEAD", "OPTIONS") else _body(rng)
        if method == "DELETE" and path == "/models/m":
            path = "/models/nobody"
        try:
            self.connection.request(method, path.encode().decode("latin-1"), body, _headers(rng))
            found = self.connection.getresponse()
            text = found.read()
        except (http.client.HTTPException, OSError, UnicodeError) as error:
            self.connection.close()
            self.statuses[0] += 1
            if self.statuses[0] > 20 + self.statuses.total() // 10:
                self.wrong.append((method, path, repr(error)))
            return
        self.statuses[found.status] += 1
        if found.status >= 500 or (
            body is not None and found.status not in REFUSED and not self._harmless(path, found.status)
        ):
            self.wrong.append((method, path, found.status, (body or b"")[:80], text[:120]))

    @staticmethod
    def _harmless(path: str, status: int) -> bool:
        """Return whether a 200 is correct: a batch reports each bad row, an explanation may use the last instance."""
        return status == 200 and path in ("/models/m/batch", "/models/m/explain")


def run(requests: int, seed: int) -> Counter[int]:
    """Send the requests; raise unless every one was rejected and the state is unchanged."""
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="varifold-fuzz-"))
    (folder / "tokens").write_text("write " + "w" * 24 + "\n")
    with Process("--token-file", str(folder / "tokens"), folder=folder) as server, server.client() as client:
        client.headers["authorization"] = GOOD
        client.put("/models/m", json={"method": "arow"}).raise_for_status()
        for _ in range(50):
            client.post("/models/m/learn", json=instance(rng)).raise_for_status()
        before = client.get("/models/m").json()
        fuzz = Fuzz(server.url)
        for i in range(requests):
            fuzz.one(rng)
            if fuzz.wrong:
                raise SystemExit(f"request {i} of seed {seed}: {fuzz.wrong[0]}")
        after = client.get("/models/m").json()
        if before != after:
            raise SystemExit(f"the state changed: {before} {after}")
        if "Traceback" in (folder / "log").read_text():
            raise SystemExit((folder / "log").read_text())
    return fuzz.statuses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    statuses = run(args.requests, args.seed)
    print(f"{args.requests:,} hostile requests, state unchanged; by status (0: closed): {dict(statuses)}")


if __name__ == "__main__":
    main()
