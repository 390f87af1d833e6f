"""What the server tells systemd (sd_notify(3)): that it serves, is alive, or is stopping.

Each is one datagram to the socket in `NOTIFY_SOCKET`. A failure is no error of the server:
systemd then reports the unit as not started, or restarts it, and says why.
"""

import asyncio
import os
import socket
from collections.abc import Callable

import structlog

_SEND_SECONDS = 0.5
"""How long a message waits for space in the socket: a manager that starts many units is slow."""
_log = structlog.get_logger("refract.systemd")


def notify_ready() -> None:
    """Tell systemd that requests are answered; do nothing where no manager listens."""
    _send(b"READY=1")


def notify_stopping() -> None:
    """Tell systemd that the server is ending on purpose."""
    _send(b"STOPPING=1")


def get_watchdog_interval() -> float | None:
    """Return the seconds between two signs of life; None if systemd expects none of this process.

    That is half of what the unit allows (`WatchdogSec=`), as sd_watchdog_enabled(3) recommends.
    """
    limit = os.environ.get("WATCHDOG_USEC", "")
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(limit) / 2_000_000 if limit.isdecimal() and int(limit) > 0 else None


async def feed_watchdog(is_serving: Callable[[], bool]) -> None:
    """Give signs of life while the event loop turns and requests are served; else return at once.

    Without them systemd restarts the service.
    """
    interval = get_watchdog_interval()
    while interval is not None:
        if is_serving():
            _send(b"WATCHDOG=1")
        await asyncio.sleep(interval)


def _send(message: bytes) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.settimeout(_SEND_SECONDS)
            sender.connect("\0" + address[1:] if address[0] == "@" else address)
            sender.send(message)
    except OSError as exc:
        _log.warning("systemd_not_notified", message=message.decode(), error=str(exc))
