"""The dashboard in a real browser: a stream is sent, sensors fall silent, and the page shows it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.serve.conftest import browser
from tests.serve.server import Server
from varifold.serve.core.database import Database

GROUPS = {"pressure": 4, "flow": 3, "vibration": 4}


def reading(i: int, silent: str = "") -> dict[str, Any]:
    rng = random.Random(i)
    level = math.sin(i / 9)
    x = {
        f"{group}-{k}": round(level * (k + 1) + rng.gauss(0, 0.4), 3)
        for group, n in GROUPS.items()
        for k in range(n)
        if group != silent
    }
    return {"x": x, "y": "trip" if level > 0.2 else "ok"}


def send(client: httpx.Client, first: int, last: int, silent: str = "") -> None:
    rows = [orjson.dumps({**reading(i, silent), "predict": True}) for i in range(first, last)]
    client.post("/models/plant/batch", content=b"\n".join(rows)).raise_for_status()


@pytest.fixture
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        yield found
        found.close()


@pytest.mark.browser
def test_a_group_of_sensors_falls_silent(shared: Server, client: httpx.Client, chromium: Any, tmp_path: Path) -> None:
    client.put("/models/plant", json={"method": "auto"})
    send(client, 0, 300)
    errors: list[str] = []
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(shared.url)
    page.wait_for_selector("#map .row[data-feature='vibration-3'][data-presence='here']", timeout=10_000)
    assert page.inner_text("[data-filter=here]") == "11 here"

    send(client, 300, 360, silent="vibration")
    for k in range(GROUPS["vibration"]):
        page.wait_for_selector(f"#map .row[data-feature='vibration-{k}'][data-presence='silent']", timeout=10_000)
    page.wait_for_selector("#event-list .feature-silent", timeout=10_000)
    assert "vibration-0, vibration-1, vibration-2, vibration-3: fell silent" in page.inner_text("#event-list")
    assert page.inner_text("[data-filter=silent]") == "4 silent"
    page.click("[data-filter=silent]")
    assert page.locator("#map .row").count() == 4
    page.click("[data-filter=silent]")

    send(client, 360, 400)
    page.wait_for_selector("#event-list .feature-back", timeout=10_000)
    assert page.locator("#error-chart path.curve").count() == 1
    assert page.locator("#experts-legend li").count() > 5
    page.click("#models button")
    page.wait_for_selector(".verdict", timeout=10_000)
    assert page.locator(".bars .bar i").count() > 3

    for width in (1300, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert errors == []


@pytest.mark.browser
def test_drifts_are_marked_and_listed(shared: Server, client: httpx.Client, chromium: Any) -> None:
    """The labels are exchanged half-way: experts are replaced, and the page says so."""
    client.put("/models/turned", json={"method": "auto", "params": {"budget": "fast"}})
    rows = []
    for i in range(900):
        row = reading(i)
        turned = "ok" if row["y"] == "trip" else "trip"
        rows.append(orjson.dumps({**row, "y": turned if i >= 600 else row["y"], "predict": True}))
    client.post("/models/turned/batch", content=b"\n".join(rows)).raise_for_status()
    found = client.get("/models/turned/report").json()["experts"]
    assert {"what", "expert", "step", "since", "text"} <= set(found["drifts"][0])
    steps = [drift["step"] for drift in found["drifts"] if drift["what"] == "restarted"]
    assert any(600 < step < 700 for step in steps)
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    page.goto(f"{shared.url}#turned")
    page.wait_for_selector("#drift-list [data-what=restarted]", timeout=10_000)
    assert page.locator("#experts-chart line.drift").count() >= len(steps)
    listed = page.inner_text("#drift-list")
    assert "Expert restarted at step" in listed
    assert "linear" in listed


@pytest.mark.browser
def test_a_token_is_asked_for(tmp_path: Path, chromium: Any) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("read readreadreadread\nwrite writewritewritewrite\n")
    server = Server(tmp_path / "state", "--token-file", str(tokens)).start()
    try:
        headers = {"authorization": "Bearer writewritewritewrite"}
        with server.client(headers=headers) as client:
            client.put("/models/plant", json={"method": "arow"})
        page = chromium.new_page()
        page.goto(server.url)
        page.fill("#token", "readreadreadread")
        page.click("#login button")
        page.wait_for_selector("#models button", timeout=10_000)
        assert "plant" in page.inner_text("#models")
    finally:
        server.kill()


def test_everything_comes_from_the_package(client: httpx.Client) -> None:
    """The page names no other host, and a policy forbids the browser to ask one."""
    for path in ("/", "/dashboard.css", "/dashboard.js", "/charts.js"):
        found = client.get(path)
        assert found.status_code == 200
        assert "https://" not in found.text
        assert "http://" not in found.text.replace("http://www.w3.org/2000/svg", "")
        assert found.headers["content-security-policy"].startswith("default-src 'self'")


@pytest.mark.browser
def test_a_model_that_could_not_be_recovered_has_a_card(make_server: Callable[..., Server], chromium: Any) -> None:
    server = make_server().start()
    with server.client() as client:
        for name in ("lost", "plant"):
            client.put(f"/models/{name}", json={"method": "arow"})
        send(client, 0, 50)
    server.stop()
    database = Database(server.folder)
    database._db.execute("DELETE FROM snapshots WHERE model = (SELECT id FROM models WHERE name = 'lost')")
    database.close()
    server.start()
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    page.goto(server.url)
    page.wait_for_selector("#models button[data-model=lost]", timeout=10_000)
    assert "could not be recovered" in page.inner_text("#models button[data-model=lost]")
    page.wait_for_selector("#numbers dd", timeout=10_000)
    page.click("#models button[data-model=lost]")
    page.wait_for_selector("#model[data-lost]", timeout=10_000)
    assert "a snapshot of 'lost' is missing" in page.inner_text("#stopped")
    assert not page.is_visible("#numbers")
    page.click("#models button[data-model=plant]")
    page.wait_for_selector("#model:not([data-lost])", timeout=10_000)
    page.wait_for_selector("#numbers", state="visible", timeout=10_000)
    page.wait_for_selector("#stopped", state="hidden", timeout=10_000)


@pytest.mark.browser
def test_devices_are_listed_by_trouble_and_found(shared: Server, client: httpx.Client, chromium: Any) -> None:
    client.put("/models/fleet", json={"method": "arow", "key": "device"})

    def send_round(first: int, last: int, silent: str) -> None:
        rows = [
            {"x": {"load": 1.0, **({} if f"pump-{k}" == silent else {"heat": 2.0})}, "y": "ok", "key": f"pump-{k}"}
            for i in range(first, last)
            for k in range(300)
        ]
        client.post("/models/fleet/batch", content=b"\n".join(map(orjson.dumps, rows))).raise_for_status()

    send_round(0, 12, "")
    send_round(12, 30, "pump-177")
    errors: list[str] = []
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{shared.url}/#fleet")
    page.wait_for_selector("#device-list tr[data-device='pump-177'][data-status='sensor']", timeout=10_000)
    assert page.locator("#device-list tr").first.get_attribute("data-device") == "pump-177"
    assert page.locator("#device-list tr").count() == 200
    assert "300 devices, 1 sensor silent" in page.inner_text("#device-counts")
    page.fill("#device-search", "pump-29")
    page.wait_for_selector("#device-list tr:nth-child(11):last-child", timeout=10_000)
    page.fill("#device-search", "177")
    page.wait_for_selector("#device-list tr:nth-child(1):last-child", timeout=10_000)
    page.click("#device-list button")
    page.wait_for_selector(".sensor[data-presence='silent']", timeout=10_000)
    assert page.inner_text("#device-name") == "pump-177: sensor silent"
    page.wait_for_selector("#device-events li", timeout=15_000)
    assert "pump-177: heat: fell silent" in page.inner_text("#device-events")
    for width in (1300, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#device-close")
    assert not page.is_visible("#device")
    assert errors == []
    client.delete("/models/fleet")
