"""Messages to systemd (``Type=notify``): ready, stopping, and the watchdog; none if it did not start the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send a state to systemd."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto(state.encode(), address)


async def keep_alive() -> None:
    """Tell the watchdog that the event loop runs, until cancelled; twice as often as it expects."""
    period = int(os.environ.get("WATCHDOG_USEC", "0")) / 2e6
    while period > 0:
        notify("WATCHDOG=1")
        await asyncio.sleep(period)
    await asyncio.Event().wait()
