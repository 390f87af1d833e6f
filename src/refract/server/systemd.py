"""Readiness notification for systemd (`Type=notify`)."""

import os
import socket


def notify_ready() -> None:
    """Tell systemd that requests are answered; do nothing where no manager listens.

    The protocol is one datagram to the socket in `NOTIFY_SOCKET` (sd_notify(3)). A failure is not
    an error of the server: systemd then reports the unit as not started, and says why.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        sender.connect("\0" + address[1:] if address[0] == "@" else address)
        sender.send(b"READY=1")
