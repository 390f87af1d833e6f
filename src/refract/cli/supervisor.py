"""Several server processes behind one socket.

The parent owns the socket, so nothing in its accept queue is lost when a process goes. It replaces processes one by one
on SIGHUP, starts another for one that died, and never lets a process that cannot start take a healthy one with it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass

import structlog

from refract.cli.server import HARD_SECONDS
from refract.core.settings import Settings

START_SECONDS = 30.0
SHORT_LIFE = 2.0
LONGEST_PAUSE = 10.0


@dataclass(slots=True)
class Child:
    """A server process. It holds the other end of `lifeline`, and stops when that closes: no orphan outlives the parent."""

    process: asyncio.subprocess.Process
    lifeline: int
    began: float


class Supervisor:
    """Keeps `settings.workers` processes serving."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._children: dict[int, Child] = {}
        self._stopping = asyncio.Event()
        self._replace = asyncio.Event()
        self._pause = 0.0
        self._log = structlog.get_logger("refract.supervisor")

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._replace.set)
        await asyncio.gather(*(self._fill(slot) for slot in range(self._settings.workers)))
        while not self._stopping.is_set():
            await self._something_happened()
            if self._replace.is_set() and not self._stopping.is_set():
                self._replace.clear()
                await self._replace_all()
        await self._stop_all()

    async def _something_happened(self) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (self._stopping, self._replace)]
        deaths = {asyncio.create_task(child.process.wait()): slot for slot, child in self._children.items()}
        done, pending = await asyncio.wait([*waits, *deaths], return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        for task in done:
            if task in deaths and not self._stopping.is_set():
                await self._revive(deaths[task])

    async def _revive(self, slot: int) -> None:
        """Start another in place of one that died, ever more slowly if they keep dying young."""
        dead = self._children.pop(slot)
        os.close(dead.lifeline)
        young = time.monotonic() - dead.began < SHORT_LIFE
        self._pause = min(LONGEST_PAUSE, max(0.25, self._pause * 2)) if young else 0.0
        self._log.error("server_process_died", code=dead.process.returncode, next_in_seconds=self._pause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._stopping.wait()
        if not self._stopping.is_set():
            await self._fill(slot)

    async def _fill(self, slot: int) -> bool:
        """Start a process for a slot and wait until it accepts connections; False when it does not."""
        child, ready = await self._spawn()
        if not ready:
            self._log.error("server_process_did_not_start", code=child.process.returncode)
        self._children[slot] = child
        return ready

    async def _spawn(self) -> tuple[Child, bool]:
        told, tell = os.pipe()
        held, lifeline = os.pipe()
        environment = os.environ | {
            "REFRACT_HOST": self._settings.host,
            "REFRACT_PORT": str(self._settings.port),
            "REFRACT_DATA_DIR": str(self._settings.data_dir),
            "REFRACT_WORKERS": str(self._settings.workers),
            "REFRACT_ROLE": self._settings.role,
        }
        listener = self._listener.fileno()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "refract.cli.child", str(listener), str(tell), str(held), env=environment, pass_fds=(listener, tell, held)
        )
        os.close(tell)
        os.close(held)
        child = Child(process, lifeline, time.monotonic())
        return child, await self._hears_ready(told, process)

    @staticmethod
    async def _hears_ready(told: int, process: asyncio.subprocess.Process) -> bool:
        """The child writes one byte when it serves; its death closes the pipe."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[bool] = loop.create_future()

        def hear() -> None:
            if not heard.done():
                heard.set_result(os.read(told, 1) == b"1")

        loop.add_reader(told, hear)
        try:
            async with asyncio.timeout(START_SECONDS):
                return await heard
        except TimeoutError:
            process.kill()
            return False
        finally:
            loop.remove_reader(told)
            os.close(told)

    async def _replace_all(self) -> None:
        """One by one: the next goes only when its successor serves."""
        for slot in list(self._children):
            old = self._children[slot]
            new, ready = await self._spawn()
            if not ready:
                self._log.error("replacement_did_not_start", code=new.process.returncode)
                await self._end(new)
                return
            self._children[slot] = new
            await self._end(old)
        self._log.info("server_processes_replaced", count=len(self._children))

    async def _stop_all(self) -> None:
        await asyncio.gather(*(self._end(child) for child in self._children.values()))

    async def _end(self, child: Child) -> None:
        if child.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._settings.stop_grace_seconds + 2 * HARD_SECONDS):
                await child.process.wait()
        except TimeoutError:
            child.process.kill()
            await child.process.wait()
        with contextlib.suppress(OSError):
            os.close(child.lifeline)
