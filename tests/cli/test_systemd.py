"""`refract serve` under systemd: the unit counts as started once requests are answered."""

import socket
from pathlib import Path

import httpx
import pytest

from refract.server.systemd import notify_ready
from tests.serving import serving
from tests.waiting import PATIENCE


@pytest.mark.parametrize("workers", ["1", "2"])
def test_readiness_is_reported_by_the_main_process_once_it_serves(
    tmp_path: Path, workers: str
) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        manager.settimeout(PATIENCE)
        manager.bind(str(address))
        with serving(
            tmp_path / "data",
            REFRACT_BACKGROUND="process",
            REFRACT_WORKERS=workers,
            NOTIFY_SOCKET=str(address),
        ) as served:
            message, credentials, _, _ = manager.recvmsg(64, socket.CMSG_SPACE(12))
            sender = int.from_bytes(credentials[0][2][:4], "little")

            assert message == b"READY=1"
            assert sender == served.process.pid
            assert httpx.get(f"{served.url}/health", trust_env=False).status_code == 200


def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("", "vsock:2:1234"):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify_ready()
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify_ready()
