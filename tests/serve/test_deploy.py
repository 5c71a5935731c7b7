"""The files in deploy/ name options, metrics and routes that exist; `make deploy` runs the tools of their formats."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.serve.server import Server, instance
from varifold.cli import main

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(path: Path) -> Iterator[Any]:
    yield from yaml.safe_load_all(path.read_text())


def configurations() -> Iterator[tuple[str, str]]:
    yield "varifold.toml", (DEPLOY / "varifold.toml").read_text()
    for document in documents(DEPLOY / "kubernetes" / "varifold.yaml"):
        if document["kind"] == "ConfigMap":
            yield "kubernetes", document["data"]["varifold.toml"]


@pytest.mark.parametrize(("name", "text"), list(configurations()))
def test_configurations_have_known_options(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "varifold.toml"
    path.write_text(text)
    assert main(["serve", "--config", str(path), "--print-config"]) == 0
    printed = tomllib.loads(capsys.readouterr().out)
    assert {key: value for key, value in tomllib.loads(text).items() if key != "max-memory"}.items() <= printed.items()


def test_every_metric_of_dashboards_and_alerts_exists(make_server: Callable[..., Server]) -> None:
    server = make_server().start()
    with server.client() as client:
        for name, more in (("plain", {}), ("keyed", {"key": "device"})):
            client.put(f"/models/{name}", json={"method": "arow", **more})
            client.post(f"/models/{name}/learn", json={**instance(1), **({"key": "a"} if more else {})})
        client.post("/models/plain/learn", json={})
        text = client.get("/metrics").text
    known = set(re.findall(r"^([a-z_0-9]+)[{ ]", text, re.M)) | {"varifold_events_total", "varifold_kafka_lag"}
    dashboard = orjson.loads((DEPLOY / "grafana" / "dashboards" / "varifold.json").read_bytes())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    (rules,) = documents(DEPLOY / "prometheus" / "alerts.yml")
    expressions += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    used = {name for text in expressions for name in re.findall(r"\b(?:varifold|process)_[a-z_0-9]+", text)}
    assert len(used) > 15
    assert used <= known


def test_probes_and_health_checks_use_open_routes(make_server: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("write writewritewritewrite\n")
    server = make_server("--token-file", str(tmp_path / "tokens")).start()
    (state,) = (d for d in documents(DEPLOY / "kubernetes" / "varifold.yaml") if d["kind"] == "StatefulSet")
    (container,) = state["spec"]["template"]["spec"]["containers"]
    probes = [container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")]
    assert "/healthz" in (DEPLOY / "Containerfile").read_text()
    with server.client() as client:
        assert {client.get(path).status_code for path in probes} == {200}


def test_the_other_files_are_of_their_format() -> None:
    for path in DEPLOY.rglob("*.y*ml"):
        assert list(documents(path)), path
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert set(services) == {"varifold", "mosquitto", "prometheus", "grafana"}
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).exists(), source
    unit = (DEPLOY / "systemd" / "varifold.service").read_text()
    assert {"Type=notify", "WatchdogSec=30", "NoNewPrivileges=yes"} <= set(unit.splitlines())
