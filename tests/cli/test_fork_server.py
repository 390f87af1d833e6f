"""Processes started by a fork server, with scripted entry points."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from refract.server import fork_client
from refract.server.fork_client import ForkServer
from tests.waiting import eventually

SCRIPT = """
import os, sys
from pathlib import Path

def wait(arguments, descriptors):
    os.write(descriptors[0], f"{arguments[0]} {os.getppid()}".encode())
    os.read(descriptors[1], 1)

def leave(arguments, descriptors):
    sys.exit(int(arguments[0]))

def fail(arguments, descriptors):
    raise ValueError
"""
FORK_SERVER = """
from refract.server import fork_server
fork_server.load_code = fork_server.load_features = lambda *_: None
fork_server.IDLE_SECONDS = {idle}
fork_server.main()
"""


class Pipes:
    """A pipe from a scripted process, and one that keeps it until it is closed."""

    def __init__(self) -> None:
        self._reader, self._told = os.pipe()
        self._held, self._lifeline = os.pipe()

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._told, self._held

    def read_parent(self) -> int:
        word, parent = os.read(self._reader, 100).decode().split()
        assert word == "hello"
        return int(parent)

    def close(self) -> None:
        for descriptor in (self._reader, self._told, self._held, self._lifeline):
            os.close(descriptor)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


def _script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: float = 60.0) -> ForkServer:
    (tmp_path / "scripted.py").write_text(SCRIPT)
    command = (sys.executable, "-c", FORK_SERVER.format(idle=idle))
    monkeypatch.setattr(fork_client, "FORK_SERVER_COMMAND", command)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    return ForkServer(os.environ | {"PYTHONPATH": path})


async def test_the_exit_status_is_that_of_the_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server = _script(tmp_path, monkeypatch)
    assert await (await server.fork("leaves", "scripted:leave", ["75"])).wait() == 75
    assert await (await server.fork("leaves", "scripted:leave", ["0"])).wait() == 0
    assert await (await server.fork("fails", "scripted:fail")).wait() == 1
    assert "ValueError" in capfd.readouterr().err
    await server.retire()


async def test_a_killed_process_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipes: Pipes
) -> None:
    server = _script(tmp_path, monkeypatch)
    process = await server.fork("refract: test", "scripted:wait", ["hello"], pipes.descriptors)
    pipes.read_parent()
    assert _read_file(f"/proc/{process.pid}/cmdline").startswith("refract: test\0")
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    assert process.returncode == -signal.SIGKILL
    process.send_signal(signal.SIGTERM)  # nothing: its id may be another's by now
    await server.retire()


@pytest.mark.parametrize("end", ["idle", "killed", "code changed"])
async def test_a_process_outlives_its_fork_server_and_is_still_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipes: Pipes, end: str
) -> None:
    """The fork server ends when it is not used; what it forked becomes ours, and no zombie."""
    server = _script(tmp_path, monkeypatch, 0.05 if end == "idle" else 60.0)
    process = await server.fork("waits", "scripted:wait", ["hello"], pipes.descriptors)
    first = pipes.read_parent()
    if end == "killed":
        os.kill(first, signal.SIGKILL)
    if end == "code changed":
        monkeypatch.setattr(fork_client, "_identify_code", lambda: (0, 0))
    else:
        await eventually(lambda: _is_gone(first))

    other = Pipes()
    second = await server.fork("waits", "scripted:wait", ["hello"], other.descriptors)
    assert other.read_parent() != first
    assert (process.returncode, second.returncode) == (None, None)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    await process.wait()
    assert _read_file(f"/proc/{process.pid}/stat") == ""
    second.kill()
    await second.wait()
    other.close()
    await server.retire()


async def test_code_that_cannot_be_loaded_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server = _script(tmp_path, monkeypatch)
    monkeypatch.setattr(
        fork_client, "FORK_SERVER_COMMAND", (sys.executable, "-c", "raise ImportError('broken')")
    )
    process = await server.fork("leaves", "scripted:leave", ["0"])
    assert await process.wait() != 0
    assert process.pid is None
    assert "broken" in capfd.readouterr().err
    await server.retire()


def _is_gone(pid: int) -> bool:
    return _read_file(f"/proc/{pid}/stat").rpartition(")")[2][1:2] in ("", "Z", "X")


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
