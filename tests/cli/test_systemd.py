"""`refract serve` under systemd: started once requests are answered, watched, and stopping."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from refract.server.systemd import feed_watchdog, get_watchdog_interval, notify_ready
from tests.serving import serving
from tests.waiting import PATIENCE


class Manager:
    """A socket as systemd opens it, read all the time: it holds only ten messages."""

    def __init__(self, address: Path) -> None:
        self.address = address
        self.messages: list[tuple[int, bytes]] = []
        self._changed = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(address))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            message, credentials, _, _ = self._socket.recvmsg(64, socket.CMSG_SPACE(12))
            if message == b"end of test":
                return
            with self._changed:
                self.messages.append((int.from_bytes(credentials[0][2][:4], "little"), message))
                self._changed.notify_all()

    def wait_for(self, message: bytes, count: int = 1) -> list[int]:
        """Wait until a message has come so often, and return the processes that sent it."""

        def find() -> list[int]:
            return [sender for sender, text in self.messages if text == message]

        with self._changed:
            assert self._changed.wait_for(lambda: len(find()) >= count, PATIENCE), self.messages
            return find()

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"end of test", str(self.address))
        self._reader.join(PATIENCE)
        self._socket.close()


@contextmanager
def _listening(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(tmp_path / "notify")
    try:
        yield manager
    finally:
        manager.close()


@pytest.mark.parametrize(
    ("background", "workers"), [("process", "1"), ("process", "2"), ("inline", "1")]
)
def test_the_main_process_says_that_it_serves_lives_and_stops(
    tmp_path: Path, background: str, workers: str
) -> None:
    with _listening(tmp_path) as manager:
        with serving(
            tmp_path / "data",
            REFRACT_BACKGROUND=background,
            REFRACT_WORKERS=workers,
            NOTIFY_SOCKET=str(manager.address),
            WATCHDOG_USEC="400000",
        ) as served:
            main = served.process.pid
            assert set(manager.wait_for(b"READY=1")) == {main}
            assert httpx.get(f"{served.url}/health", trust_env=False).status_code == 200
            assert set(manager.wait_for(b"WATCHDOG=1", 3)) == {main}
        if background == "process":
            assert manager.wait_for(b"STOPPING=1") == [main]


def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("", "vsock:2:1234"):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify_ready()
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify_ready()


def test_a_manager_that_does_not_read_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify_ready()  # nobody there
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as other:
            other.connect(address)
            with pytest.raises(BlockingIOError):
                while True:
                    other.send(b"X=1")

        notify_ready()


def test_only_the_process_that_is_watched_feeds_the_watchdog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    assert get_watchdog_interval() == 30.0
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert get_watchdog_interval() == 30.0
    monkeypatch.setenv("WATCHDOG_PID", str(os.getppid()))
    assert get_watchdog_interval() is None
    monkeypatch.delenv("WATCHDOG_PID")
    for unusable in ("", "0", "soon"):
        monkeypatch.setenv("WATCHDOG_USEC", unusable)
        assert get_watchdog_interval() is None


async def test_a_server_that_serves_nothing_gives_no_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()
    is_serving = False

    def ask() -> bool:
        asked.set()
        return is_serving

    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    with _listening(tmp_path) as manager:
        monkeypatch.setenv("NOTIFY_SOCKET", str(manager.address))
        feeding = asyncio.create_task(feed_watchdog(ask))
        for _ in range(3):
            asked.clear()
            await asyncio.wait_for(asked.wait(), PATIENCE)
        assert manager.messages == []
        is_serving = True
        await asyncio.to_thread(manager.wait_for, b"WATCHDOG=1")
        feeding.cancel()
