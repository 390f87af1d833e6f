"""The supervisor of server processes, with scripted children."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from refract.core.settings.model import Settings
from refract.server import fork_client, process_slot, supervisor
from refract.server.parent import build_environment
from refract.server.supervisor import ProcessSupervisor
from tests.waiting import PATIENCE, eventually, keeps

CHILD = """
import os, select, signal, sys, time
from pathlib import Path

def serve(arguments, descriptors):
    told, held, *_ = descriptors
    births = Path(os.environ["BORN"])
    note = lambda suffix: open(f"{births}{suffix}", "a").write(f"{os.getpid()}\\n")
    behaviour = Path(os.environ["BEHAVIOUR"]).read_text().split()
    born = len(births.read_text().splitlines())
    note("")
    Path(f"{births}-{os.getpid()}").write_text(arguments[1])
    wish = behaviour[min(born, len(behaviour) - 1)]
    if wish == "dies":
        sys.exit(3)
    if wish == "needs-schema":
        sys.exit(75)
    if not os.read(held, 1):
        sys.exit(4)
    note("-going")
    if wish == "slow":
        time.sleep(1.5)
    stopping = []

    def leave(*_):
        stopping.append(1)
        note("-leaving")

    signal.signal(signal.SIGTERM, leave)
    os.write(told, b"1")
    os.close(told)
    while not stopping or (wish == "lingers" and not Path(f"{births}-let-go").exists()):
        if held and select.select([held], [], [], 0)[0]:
            note("-released")
            held = None
        time.sleep(0.01)

def prepare(arguments, descriptors):
    births = Path(os.environ["BORN"])
    open(f"{births}-prepared", "a").write("1\\n")
    sys.exit(int(births.with_name("prepare-status").read_text()))
"""
FORK_SERVER = """
from refract.server import fork_server
fork_server.load_code = fork_server.load_features = lambda *_: None
fork_server.main()
"""


class Nursery:
    """Scripted children: each new one behaves as the next word says; the last word repeats."""

    def __init__(self, home: Path) -> None:
        self.behaviour = home / "behaviour"
        self.births = home / "born"
        self.births.touch()

    def prepare_by(self, code: int) -> None:
        """Let the process that prepares the database note that it ran, and end with this status."""
        self.births.with_name("prepare-status").write_text(str(code))

    def let_go(self) -> None:
        """Let those that linger end."""
        self.births.with_name("born-let-go").touch()

    @property
    def prepared(self) -> int:
        return len(self._told("born-prepared"))

    def plan(self, *words: str) -> None:
        self.behaviour.write_text(" ".join(words))

    @property
    def born(self) -> list[int]:
        return [int(line) for line in self.births.read_text().split()]

    @property
    def going(self) -> list[int]:
        return self._told("born-going")

    @property
    def leaving(self) -> list[int]:
        return self._told("born-leaving")

    @property
    def released(self) -> list[int]:
        """Those that the parent does not keep any more."""
        return self._told("born-released")

    def _told(self, where: str) -> list[int]:
        file = self.births.with_name(where)
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def name(self, pid: int) -> str:
        """The name by which its siblings know a process."""
        return self.births.with_name(f"born-{pid}").read_text().split()[0]

    @property
    def living(self) -> list[int]:
        return [pid for pid in self.born if _alive(pid)]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _is_silent(listener: socket.socket) -> bool:
    try:
        return not listener.recv(64)
    except BlockingIOError:
        return True


@pytest.fixture
def nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nursery:
    (tmp_path / "scripted.py").write_text(CHILD)
    made = Nursery(tmp_path)
    monkeypatch.setenv("BEHAVIOUR", str(made.behaviour))
    monkeypatch.setenv("BORN", str(made.births))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    for name in ("SERVING_ENTRY_POINT", "REDIRECT_ENTRY_POINT"):
        monkeypatch.setattr(supervisor, name, "scripted:serve")
    monkeypatch.setattr(supervisor, "PREPARE_ENTRY_POINT", "scripted:prepare")
    monkeypatch.setattr(fork_client, "FORK_SERVER_COMMAND", (sys.executable, "-c", FORK_SERVER))
    made.prepare_by(0)
    return made


@asynccontextmanager
async def _supervised(
    tmp_path: Path,
    workers: int,
    *,
    prepared: bool = True,
    background: Literal["process", "inline"] = "inline",
) -> AsyncIterator[tuple[ProcessSupervisor, "asyncio.Task[None]"]]:
    """A supervisor in this process: its signals are ours while the block runs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        settings = Settings(
            data_dir=tmp_path, workers=workers, stop_grace_seconds=0, background=background
        )
        parent = ProcessSupervisor(settings, listener, build_environment(settings))
        if prepared:
            parent.mark_prepared()
        task = asyncio.create_task(parent.run())
        try:
            yield parent, task
        finally:
            if not task.done():
                os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                await task
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().remove_signal_handler(number)


async def test_a_process_that_dies_while_others_are_being_replaced_is_followed_at_once(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("lingers")
    async with _supervised(tmp_path, 3):
        await eventually(lambda: len(nursery.living) == 3)
        first = nursery.living
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.leaving) == 1)  # its successor serves
        nursery.plan("serves")
        os.kill(next(pid for pid in first if pid not in nursery.leaving), signal.SIGKILL)
        await eventually(lambda: len(nursery.born) == 5)
        assert _alive(nursery.leaving[0])
        nursery.let_go()
        await eventually(lambda: len(nursery.living) == 3 and not set(first) & set(nursery.living))


async def test_one_process_is_there_before_the_database_is_prepared_and_all_go_on_after_it(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves")
    async with _supervised(tmp_path, 2, prepared=False) as (parent, _):
        await eventually(lambda: len(nursery.living) == 1)
        await keeps(lambda: (len(nursery.born), nursery.going) == (1, []))
        parent.mark_prepared()
        await eventually(
            lambda: sorted(nursery.going) == sorted(nursery.born) and len(nursery.living) == 2
        )


async def test_stopped_before_the_database_is_prepared_nobody_stays(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves")
    async with _supervised(tmp_path, 2, prepared=False):
        await eventually(lambda: len(nursery.living) == 1)
    assert (nursery.living, nursery.going) == ([], [])


async def test_one_that_cannot_start_does_not_hold_up_another(
    tmp_path: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_slot, "MIN_RESTART_SECONDS", 3600.0)
    monkeypatch.setattr(process_slot, "MAX_RESTART_SECONDS", 3600.0)
    monkeypatch.setattr(process_slot, "MIN_LIFETIME_SECONDS", 0.0)
    nursery.plan("serves", "dies", "serves")
    async with _supervised(tmp_path, 2):
        await eventually(lambda: len(nursery.born) == 2 and len(nursery.living) == 1)
        os.kill(nursery.living[0], signal.SIGKILL)
        await eventually(lambda: len(nursery.born) == 3 and len(nursery.living) == 1)


async def test_a_stop_in_the_middle_of_a_replacement_stops(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves", "serves", "serves", "slow")
    async with _supervised(tmp_path, 3) as (_, task):
        await eventually(lambda: len(nursery.living) == 3)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.born) == 4)
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await task
        assert nursery.living == []
        assert len(nursery.born) == 4  # none was replaced after the stop


async def test_a_stop_waits_for_one_that_is_still_leaving(tmp_path: Path, nursery: Nursery) -> None:
    nursery.plan("lingers", "lingers", "serves")
    async with _supervised(tmp_path, 2) as (_, task):
        await eventually(lambda: len(nursery.living) == 2)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.leaving) == 1)  # its successor serves
        os.kill(os.getpid(), signal.SIGTERM)
        await eventually(lambda: {*nursery.leaving} == {*nursery.born})
        await keeps(lambda: not task.done())
        nursery.let_go()
        async with asyncio.timeout(PATIENCE):
            await task
        assert nursery.living == []


async def test_a_successor_that_does_not_start_leaves_the_old_ones_serving(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves", "serves", "dies")
    async with _supervised(tmp_path, 2):
        await eventually(lambda: len(nursery.living) == 2)
        first = set(nursery.living)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.born) == 3 and not _alive(nursery.born[2]))
        await keeps(lambda: set(nursery.living) == first)
        nursery.plan("serves")
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.living) == 2 and not first & set(nursery.living))


async def test_asked_again_during_a_replacement_it_replaces_again(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves")
    async with _supervised(tmp_path, 2):
        await eventually(lambda: len(nursery.living) == 2)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.born) >= 3)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.born) == 6 and len(nursery.living) == 2)


async def test_the_database_is_prepared_by_the_new_code_before_anybody_is_replaced(
    tmp_path: Path, nursery: Nursery
) -> None:
    """SIGHUP started new code on the old schema: `prepare` ran only when the parent started."""
    nursery.plan("serves")
    nursery.prepare_by(2)
    async with _supervised(tmp_path, 2):
        await eventually(lambda: len(nursery.living) == 2)
        first = set(nursery.living)
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: nursery.prepared == 1)
        nursery.prepare_by(0)
        assert set(nursery.born) == first  # none was started before the database was prepared
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(
            lambda: (
                nursery.prepared == 2
                and len(nursery.living) == 2
                and not first & set(nursery.living)
            )
        )


async def test_a_process_that_needs_a_newer_schema_gets_it(
    tmp_path: Path, nursery: Nursery
) -> None:
    """A process that dies after an upgrade, before the reload, is replaced by new code."""
    nursery.plan("serves", "needs-schema", "serves")
    async with _supervised(tmp_path, 1):
        await eventually(lambda: len(nursery.living) == 1)
        os.kill(nursery.living[0], signal.SIGKILL)
        await eventually(lambda: len(nursery.born) == 3 and nursery.living == nursery.born[2:])
        assert nursery.prepared == 1


async def test_no_descriptor_is_left_behind(tmp_path: Path, nursery: Nursery) -> None:
    nursery.plan("serves")
    async with _supervised(tmp_path, 2):
        await eventually(lambda: len(nursery.living) == 2)
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for _ in range(3):
            last = len(nursery.born)
            os.kill(nursery.living[0], signal.SIGKILL)
            await eventually(
                lambda last=last: len(nursery.born) > last and len(nursery.living) == 2
            )
        with contextlib.suppress(AssertionError):
            await eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)  # noqa: PTH208
        assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


async def test_the_redirecting_process_starts_first_and_is_replaced_last(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves")
    async with _supervised(tmp_path, 2, background="process"):
        await eventually(lambda: len(nursery.going) == 3)
        assert nursery.name(nursery.born[0]) == "redirect"
        assert sorted(map(nursery.name, nursery.born)) == ["0", "1", "redirect"]
        os.kill(os.getpid(), signal.SIGHUP)
        await eventually(lambda: len(nursery.born) == 6 and len(nursery.living) == 3)
        assert [nursery.name(pid) for pid in nursery.born[3:]] == ["1", "0", "redirect"]


async def test_each_is_followed_when_it_dies_and_the_other_stays(
    tmp_path: Path, nursery: Nursery
) -> None:
    nursery.plan("serves")
    async with _supervised(tmp_path, 1, background="process"):
        await eventually(lambda: len(nursery.going) == 2)
        redirecting, serving = nursery.born
        os.kill(serving, signal.SIGKILL)
        await eventually(lambda: len(nursery.going) == 3)
        assert nursery.living == [redirecting, nursery.born[2]]
        os.kill(redirecting, signal.SIGKILL)
        await eventually(lambda: len(nursery.going) == 4)
        assert nursery.living == nursery.born[2:]
        assert [nursery.name(pid) for pid in nursery.living] == ["0", "redirect"]


async def test_the_redirecting_process_stops_first(tmp_path: Path, nursery: Nursery) -> None:
    """Until its end it passes connections to the others."""
    nursery.plan("lingers")
    async with _supervised(tmp_path, 2, background="process"):
        await eventually(lambda: len(nursery.going) == 3)
        redirecting = nursery.born[0]
        os.kill(os.getpid(), signal.SIGTERM)
        await eventually(lambda: {*nursery.leaving} == {*nursery.born} and nursery.released != [])
        await keeps(lambda: nursery.released == [redirecting])
        nursery.let_go()


async def test_only_a_serving_process_makes_the_service_ready(
    tmp_path: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    nursery.plan("serves", "dies")
    monkeypatch.setattr(process_slot, "MIN_RESTART_SECONDS", 3600.0)
    monkeypatch.setattr(process_slot, "MAX_RESTART_SECONDS", 3600.0)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
        manager.bind(str(tmp_path / "notify"))
        async with _supervised(tmp_path, 1, background="process"):
            await eventually(lambda: len(nursery.going) == 1)
            assert nursery.name(nursery.going[0]) == "redirect"
            await keeps(lambda: _is_silent(manager))
