"""Running a server: configuration, environment, logs, TLS, tokens by model, reloading, draining, systemd."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.serve.server import Server, instance
from varifold.cli import main
from varifold.serve.client import RemoteClassifier, ServerError
from varifold.serve.http.protocol import Certificate, accept_tls

CONFIG = """
host = "127.0.0.1"
max-memory = "300M"
log = "json"
alert-error = "0.3,price=20"

[models.plant]
method = "arow"
params = { r = 2.5 }
input = { target = "state", time = "ts", ignore = ["serial"] }

[models.pumps]
method = "arow"
key = "device"
"""


def test_a_configuration_makes_models_and_sets_options(make_server: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "varifold.toml").write_text(CONFIG)
    server = make_server("--config", str(tmp_path / "varifold.toml")).start()
    with server.client() as client:
        plant = client.get("/models/plant").json()
        assert (plant["method"], plant["params"]["r"], plant["input"]["time"]) == ("arow", 2.5, "ts")
        assert client.get("/models/pumps").json()["key"] == "device"
        assert client.post("/models/plant/learn", json={"x": {"a": 1, "ts": "2026-01-01", "state": "up"}}).is_success
        assert "varifold_store_memory_limit_bytes 3.145728e+08" in client.get("/metrics").text
    assert server.stop() == 0
    lines = [orjson.loads(line) for line in server.log().splitlines()]
    assert all(line.keys() >= {"time", "level", "model", "text"} for line in lines)
    texts = [line["text"] for line in lines]
    assert any(re.fullmatch(r"varifold \S+ serves 2 models of .*", text) for text in texts)
    assert texts[-2:] == ["stopping: SIGTERM", "stopped: everything is stored"]
    assert ("plant", "made, of the method 'arow'") in [(line["model"], line["text"]) for line in lines]
    other = CONFIG.replace('time = "ts"', 'time = "at"').replace(
        'key = "device"', 'key = "device"\nask = {budget = 0.1}'
    )
    (tmp_path / "varifold.toml").write_text(other)
    server.start()
    with server.client() as client:
        assert client.get("/models/plant").json()["steps"] == 1
    warnings = [line for line in map(orjson.loads, server.log().splitlines()) if line["level"] == "warning"]
    plant, pumps = sorted(warnings, key=lambda line: line["model"])
    assert plant["text"].startswith('exists, with the input rules {"target":"state","time":"ts"')
    assert "PUT /models/plant" in plant["text"]
    assert pumps["text"] == (
        "exists, with the ask null; that of the configuration is not used, and cannot be changed: leave it out, or "
        "give another name for the model"
    )


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["serve", "--print-config", *options]) == 0
    return capsys.readouterr().out


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "varifold.toml"
    path.write_text(CONFIG + "\n")
    monkeypatch.setenv("VARIFOLD_HOST", "127.0.0.2")
    monkeypatch.setenv("VARIFOLD_PORT", "9000")
    monkeypatch.setenv("VARIFOLD_MQTT_TLS", "true")
    found = printed(capsys, "--config", str(path), "--port", "9001", "--dir", "s")
    for line in ('host = "127.0.0.2"', "port = 9001", "max-memory = 314572800", 'alert-error = "0.3,price=20"'):
        assert line in found.splitlines()
    assert "mqtt-tls = true" in found
    assert "[models.plant]" in found
    (tmp_path / "again.toml").write_text(found)
    for name in ("HOST", "PORT", "MQTT_TLS"):
        monkeypatch.delenv(f"VARIFOLD_{name}")
    assert printed(capsys, "--config", str(tmp_path / "again.toml")) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hosts = 'a'", "there is no option 'hosts'; did you mean host"),
        ("port = 'many'", "port is 'many'"),
        ("log = 'xml'", "none of text, json"),
        ("[model.a]\nmethod = 'arow'", "there is no table [model]"),
        ("[models.a]\nmethods = 'arow'", "[models.a]: a model has no field 'methods'; did you mean method"),
        ("[models.a]\nmethod = 5", "[models.a]: a model is made of"),
        ("[models.a]\nparams = 'r=1'", "[models.a]: a model is made of"),
        ("[models.a]\nkey = 5", "[models.a]: a model is made of"),
        ("[models]\na = 5", "[models.a]: a model is described by an object or a table"),
        ("[models.a]\ninput = { tim = 'a' }", "did you mean time"),
        ("x = ", "cannot be read"),
        ("port = 0\n[models.a]\nmethod = 'arwo'", "[models.a] of the configuration: there is no method 'arwo'"),
        ("port = 0\n[models.a]\nparams = { scale = 1 }", "[models.a] of the configuration: The 'scale' parameter"),
    ],
)
def test_a_configuration_that_cannot_be_used(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "varifold.toml"
    path.write_text(text)
    assert main(["serve", "--dir", str(tmp_path / "s"), "--config", str(path)]) == 2
    assert reason in capsys.readouterr().err


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={name}"
    more = f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run([*command.split(), *more.split()], check=True, capture_output=True)
    return cert, key


def served_name(server: Server) -> str:
    host, port = server.url.removeprefix("https://").split(":")
    found = ssl.get_server_certificate((host, int(port)))
    command = ["openssl", "x509", "-noout", "-subject"]
    shown = subprocess.run(command, input=found.encode(), check=True, capture_output=True)
    return shown.stdout.decode().rpartition("=")[2].strip()


def test_tls_and_a_new_certificate(
    make_server: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path, "first")
    tokens = tmp_path / "tokens"
    tokens.write_text("write oldoldoldoldoldold\n")
    server = make_server("--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(tokens)).start()
    context = ssl.create_default_context(cafile=str(cert))
    with httpx.Client(base_url=server.url, verify=context) as client:
        assert client.get("/healthz").status_code == 200
    assert served_name(server) == "first"
    token = "oldoldoldoldoldold"
    started = time.monotonic()
    with pytest.raises(ServerError, match="SSL_CERT_FILE names the certificates of a private authority"):
        RemoteClassifier(server.url, "m", method="arow", token=token)
    assert time.monotonic() - started < 15  # not tried again for half a minute
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    RemoteClassifier(server.url, "m", method="arow", token=token).close()
    for old, new in zip((cert, key), certificate(tmp_path, "second"), strict=True):
        old.write_bytes(new.read_bytes())
    tokens.write_text("nothing\n")  # which does not keep the certificate from being read
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line("certificate is read again", 10.0)
    assert served_name(server) == "second"
    cert.write_bytes(certificate(tmp_path, "third")[0].read_bytes())  # its key is not here yet
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line(f"the certificate {cert} could not be read again, and stays as it was")
    assert served_name(server) == "second"
    assert server.stop() == 0


def test_a_certificate_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cert, key = certificate(tmp_path, "first")
    cert.write_text("nothing")
    assert main(["serve", "--dir", str(tmp_path / "state"), "--tls-cert", str(cert), "--tls-key", str(key)]) == 2
    assert f"--tls-cert {cert} and --tls-key {key} are no certificate" in capsys.readouterr().err


def test_connections_without_a_handshake_leave_file_descriptors_to_the_state(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path, "first")
    server = make_server("--tls-cert", str(cert), "--tls-key", str(key))
    server.start(wrap=["bash", "-c", 'ulimit -n 200; exec "$@"', "-"])
    host, port = server.url.removeprefix("https://").split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(250)]
    time.sleep(1.0)
    assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < 150
    context = ssl.create_default_context(cafile=str(cert))
    with httpx.Client(base_url=server.url, verify=context) as client:  # replaces the oldest
        assert client.get("/healthz").status_code == 200
    for each in idle:
        each.close()
    assert server.stop() == 0


def test_connections_without_a_handshake_keep_out_nobody(make_server: Callable[..., Server], tmp_path: Path) -> None:
    """They come before each request: neither a kept connection nor a new one is closed for them."""
    cert, key = certificate(tmp_path, "first")
    server = make_server("--tls-cert", str(cert), "--tls-key", str(key), "--max-connections", "20").start()
    host, port = server.url.removeprefix("https://").split(":")
    context = ssl.create_default_context(cafile=str(cert))
    silent: list[socket.socket] = []

    def flood(n: int) -> None:
        for _ in range(n):
            silent.append(socket.create_connection((host, int(port))))
            time.sleep(0.01)

    def client() -> ssl.SSLSocket:
        plain = socket.create_connection((host, int(port)), timeout=20.0)
        return context.wrap_socket(plain, server_hostname=host)

    def get(connection: ssl.SSLSocket) -> bytes:
        with contextlib.suppress(OSError):  # closed by the server
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            received = b""
            while not received.endswith(b"}") and (part := connection.recv(4096)):
                received += part
            return received[:15]
        return b""

    with contextlib.ExitStack() as open_ones:
        kept = [open_ones.enter_context(client()) for _ in range(4)]
        assert [get(one) for one in kept] == 4 * [b"HTTP/1.1 200 OK"]
        flood(60)
        assert [get(one) for one in kept] == 4 * [b"HTTP/1.1 200 OK"]
        for _ in range(10):
            with client() as new:
                flood(2)
                assert get(new) == b"HTTP/1.1 200 OK"
    for each in silent:
        each.close()
    assert server.stop() == 0


def test_connections_that_send_nothing_after_their_handshake_keep_out_nobody(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    """A handshake under way is not closed for those that came later than all of them."""
    cert, key = certificate(tmp_path, "first")
    server = make_server("--tls-cert", str(cert), "--tls-key", str(key), "--max-connections", "20").start()
    host, port = server.url.removeprefix("https://").split(":")
    context = ssl.create_default_context(cafile=str(cert))
    idle = [context.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host) for _ in range(20)]
    for _ in range(5):
        with socket.create_connection((host, int(port)), timeout=20.0) as plain:
            idle += [socket.create_connection((host, int(port))) for _ in range(3)]  # before the handshake
            time.sleep(0.1)
            with context.wrap_socket(plain, server_hostname=host) as new:
                new.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert new.recv(4096)[:15] == b"HTTP/1.1 200 OK"
    for each in idle:
        each.close()
    assert server.stop() == 0


def test_handshakes_end_with_the_server(tmp_path: Path) -> None:
    own = Certificate(*certificate(tmp_path, "first"))

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            accepting = asyncio.create_task(accept_tls(listening, asyncio.Protocol, own, set(), 10))
            _, writer = await asyncio.open_connection(*listening.getsockname())
            while len(asyncio.all_tasks()) < 3:
                await asyncio.sleep(0.01)
            accepting.cancel()
            await asyncio.wait({accepting})
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            writer.close()

    asyncio.run(main())


def test_tokens_by_model_and_their_rotation(make_server: Callable[..., Server], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    some = ["write plantplantplantplant models=plant,other", "read pumpspumpspumpspumps models=pumps"]
    tokens.write_text("\n".join(["write allallallallallall", *some]))
    server = make_server("--token-file", str(tokens)).start()
    words = ("allallallallallall", "plantplantplantplant", "pumpspumpspumpspumps")
    everything, plant, pumps = ({"authorization": f"Bearer {word}"} for word in words)
    with server.client() as client:
        for name in ("plant", "pumps"):
            assert client.put(f"/models/{name}", headers=everything, json={"method": "arow"}).status_code == 201
        kept = client.post("/models/pumps/predict", headers=everything, json={"x": {}, "keep": True}).json()["id"]
        for headers, route, status in (
            (plant, "/models/plant", 200),
            (plant, "/models/pumps", 403),
            (pumps, "/models/pumps", 200),
            (pumps, "/models/plant/report", 403),
            (plant, "/metrics", 403),
            (everything, "/metrics", 200),
        ):
            assert client.get(route, headers=headers).status_code == status, route
        assert [m["name"] for m in client.get("/models", headers=plant).json()["models"]] == ["plant"]
        assert client.post("/models/plant/learn", headers=plant, json=instance(1)).status_code == 200
        assert client.post("/models/pumps/learn", headers=pumps, json=instance(1)).status_code == 403
        assert client.put("/models/other", headers=plant, json={"method": "arow"}).status_code == 201
        assert client.put("/models/third", headers=plant, json={"method": "arow"}).status_code == 403
        assert client.post(f"/labels/{kept}", headers=plant, json={"y": "up"}).status_code == 404
        assert client.post(f"/labels/{kept}", headers=everything, json={"y": "up"}).status_code == 200
        for name in ("plant", "pumps"):
            body = {"x": {}, "keep": True, "id": "same"}
            assert client.post(f"/models/{name}/predict", headers=everything, json=body).status_code == 200
        assert client.post("/labels/same", headers=everything, json={"y": "up"}).status_code == 409
        assert client.post("/labels/same", headers=plant, json={"y": "up"}).status_code == 200, "pumps is not its own"
        tokens.write_text("write newnewnewnewnewnew\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line("1 token read again")
        assert client.get("/models", headers=everything).status_code == 401
        assert client.get("/models", headers={"authorization": "Bearer newnewnewnewnewnew"}).status_code == 200
        for text in ("write short\n", "write wr\xf6ngwrongwrongwrong\n"):
            tokens.write_text(text, "latin-1")
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_line("is too short" if "short" in text else "is not text in UTF-8", 10.0)
        assert server.log().count(f"the list of tokens {tokens} could not be read again, and stays as it was") == 2
        assert client.get("/models", headers={"authorization": "Bearer newnewnewnewnewnew"}).status_code == 200


def test_a_token_that_is_removed_ends_what_it_opened(make_server: Callable[..., Server], tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("write oldoldoldoldoldold\nwrite newnewnewnewnewnew\n")
    old, new = ({"Authorization": f"Bearer {word * 6}"} for word in ("old", "new"))
    server = make_server("--token-file", str(tokens)).start()
    row = orjson.dumps(instance(1)).decode()
    with server.client() as client, client.stream("GET", "/events", headers=old) as events:
        assert client.put("/models/m", headers=new, json={"method": "arow"}).status_code == 201
        address = f"{server.url.replace('http', 'ws')}/models/m/stream"
        with connect(address, additional_headers=old) as theirs, connect(address, additional_headers=new) as ours:
            for stream in (theirs, ours):
                stream.send(row)
                assert "seq" in orjson.loads(stream.recv())
            tokens.write_text("write newnewnewnewnewnew\n")
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_line("1 token read again")
            theirs.send(row)
            with pytest.raises(ConnectionClosed, match="not allowed"):
                theirs.recv()
            ours.send(row)
            assert orjson.loads(ours.recv())["seq"] == 3
        assert "data:" not in "".join(events.iter_text())  # it ends
    with server.client() as client:
        assert client.get("/models/m", headers=new).json()["steps"] == 3


def test_warnings_of_libraries_have_the_form_of_the_log() -> None:
    code = "from varifold.serve.core import log; import logging; log.configure('json'); "
    code += "logging.getLogger('mqtt').warning('busy'); log.info('started', 'plant'); logging.getLogger('x').info('no')"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stderr.splitlines()
    lines = [orjson.loads(line) for line in found]
    assert [(line["level"], line["model"], line["text"]) for line in lines] == [
        ("warning", None, "busy"),
        ("info", "plant", "started"),
    ]


def test_invalid_requests_do_not_fill_the_log(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    before = server.log()
    host, port = server.url.removeprefix("http://").split(":")
    for text in (
        b"no request\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(text)
            assert connection.recv(12).startswith(b"HTTP/1.1 ")
    assert server.log() == before


def test_a_request_in_progress_is_finished_and_one_that_hangs_is_not_waited_for(
    make_server: Callable[..., Server],
) -> None:
    server = make_server("--drain", "2").start()
    with server.client() as client:
        client.put("/models/m", json={"method": "arow"})
    host, port = server.url.removeprefix("http://").split(":")
    hanging = socket.create_connection((host, int(port)))
    hanging.sendall(b"POST /models/m/learn HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
    answered: list[Any] = []

    def rows() -> Iterator[bytes]:
        for i in range(20):
            yield orjson.dumps(instance(i)) + b"\n"
            time.sleep(0.05)

    def send() -> None:
        with server.client() as client:
            answered.append(client.post("/models/m/batch", content=rows()))

    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(0.4)
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    sender.join()
    assert server.process.wait() == 0
    assert time.monotonic() - started < 8
    assert answered[0].text.count("seq") == 20
    hanging.close()


def test_systemd_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
        command = [sys.executable, "-m", "varifold", "serve", "--dir", str(tmp_path / "s"), "--port", "0"]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        while told.count("WATCHDOG=1") < 3 or "READY=1" not in told:
            told.append(listening.recv(100).decode())
        process.terminate()
        while told[-1] != "STOPPING=1":
            told.append(listening.recv(100).decode())
        assert process.wait() == 0
