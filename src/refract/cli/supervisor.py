"""Several server processes behind one socket.

The parent owns the socket, so nothing in its accept queue is lost when a process goes. On SIGHUP it lets the code that is installed now
prepare the database, in a process of its own, and then replaces the server processes one by one. It starts another for one that died, and
never lets a process that cannot start take a healthy one with it.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from refract.cli.listener import HARD_SECONDS, fall_silent
from refract.cli.terminal import is_terminal_gone
from refract.core.settings import Settings

COMMAND = (sys.executable, "-c", "import gc; gc.disable(); from refract.cli.child import main; main()")
PREPARE = (sys.executable, "-c", "import gc; gc.disable(); from refract.cli.preparing import main; main()")
SCHEMA_TOO_OLD = 75
"""The exit status of a server process whose code needs a newer schema than there is."""
START_SECONDS = 30.0
SHORT_LIFE = 2.0
FIRST_PAUSE = 0.25
LONGEST_PAUSE = 10.0


@dataclass(slots=True, eq=False)
class Child:
    """A server process. It holds the other end of `lifeline`: told to go on, it begins; when that closes, it stops.

    So no orphan outlives the parent.
    """

    process: asyncio.subprocess.Process
    lifeline: int
    began: float
    ready: bool


class Slot:
    """One place among the processes, always to be filled. Each slot looks after itself, so that none waits for another's trouble."""

    def __init__(self, spawn: Callable[[], Awaitable[Child]], end: Callable[[Child], Awaitable[None]]) -> None:
        self._spawn = spawn
        self._end = end
        self._child: Child | None = None
        self._changing = asyncio.Lock()
        self._pause = 0.0
        self._log = structlog.get_logger("refract.supervisor")

    async def keep(self) -> None:
        """Start a process, and another whenever it dies; without end."""
        while True:
            child = self._child
            if child is not None:
                await child.process.wait()
            async with self._changing:
                if self._child is child:  # else it was replaced on purpose, and we wait for its successor
                    await self._revive(child)

    async def replace(self) -> bool:
        """Put a new process in place of the old, which goes only when its successor serves; False when that does not."""
        async with self._changing:
            new = await self._spawn()
            if not new.ready:
                self._log.error("replacement_did_not_start", code=new.process.returncode)
                await self._end(new)
                return False
            old, self._child = self._child, new
        if old is not None:
            await self._end(old)
        return True

    async def _revive(self, dead: Child | None) -> None:
        """Start another in place of one that died, ever more slowly if they keep dying young."""
        if dead is not None:
            young = time.monotonic() - dead.began < SHORT_LIFE or not dead.ready
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, self._pause * 2)) if young else 0.0
            self._log.error("server_process_died", code=dead.process.returncode, next_in_seconds=self._pause)
            await self._end(dead)
            self._child = None
            await asyncio.sleep(self._pause)
        self._child = await self._spawn()
        if not self._child.ready:
            self._log.error("server_process_did_not_start", code=self._child.process.returncode)


class Supervisor:
    """Keeps `settings.workers` processes serving."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._place = Path(tempfile.mkdtemp(prefix="refract-"))  # a short path: a socket's name may have 107 characters
        self._slots = [Slot(partial(self._spawn, number), self._end) for number in range(settings.workers)]
        self._children: set[Child] = set()
        self._first = asyncio.Lock()
        self._prepared = asyncio.Event()
        self._stopping = asyncio.Event()
        self._replace = asyncio.Event()
        self._preparing = asyncio.Lock()
        self._log = structlog.get_logger("refract.supervisor")

    def go_on(self) -> None:
        """The database is prepared. Until then processes are started and loaded, but ask it nothing."""
        self._prepared.set()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        tasks = [asyncio.create_task(work) for work in (self._replace_when_asked(), *(slot.keep() for slot in self._slots))]
        try:
            await self._until_stopped(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await fall_silent(self._listener)
            self._listener.close()  # else the kernel would go on letting clients in, whom nobody serves any more
            await self.close()

    def _hang_up(self) -> None:
        (self._stopping if is_terminal_gone() else self._replace).set()

    async def _until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        for task in done - {stopped}:
            await task  # none of them ends by itself, unless it failed

    async def _replace_when_asked(self) -> None:
        """Replace the processes one by one; what is asked for meanwhile is done afterwards."""
        while True:
            await self._replace.wait()
            self._replace.clear()
            if await self.replace_all():
                self._log.info("server_processes_replaced", count=len(self._slots))

    async def replace_all(self) -> bool:
        """Prepare the database with the code that is installed now, then replace every process; False when one of them fails."""
        if not await self._prepare():
            return False
        for slot in self._slots:
            if not await slot.replace():
                return False
        return True

    async def _prepare(self) -> bool:
        """Run the migration in a process of its own, for as long as it takes: the old processes go on serving meanwhile."""
        async with self._preparing:
            process = await asyncio.create_subprocess_exec(*PREPARE, env=self._environment())
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.terminate()
                await process.wait()
                raise
        if code != 0:
            self._log.error("database_not_prepared", code=code, consequence="the running processes are kept")
        return code == 0

    async def close(self) -> None:
        """End every process and give up the socket."""
        await asyncio.gather(*(self._end(child) for child in list(self._children)))
        self._listener.close()
        shutil.rmtree(self._place, ignore_errors=True)

    async def _spawn(self, number: int) -> Child:
        """Start a process, and once more if a version was installed meanwhile whose code needs a newer schema.

        While nobody serves, one process starts before the others: all together they would all be late.
        """
        child = await self._spawn_in_turn(number)
        if child.process.returncode == SCHEMA_TOO_OLD and await self._prepare():
            await self._end(child)
            child = await self._spawn_in_turn(number)
        return child

    async def _spawn_in_turn(self, number: int) -> Child:
        async with self._first:
            if not any(child.ready for child in self._children):
                return await self._start(number)
        return await self._start(number)

    async def _start(self, number: int) -> Child:
        """Start a process and wait until it accepts connections, or does not."""
        told, tell = os.pipe()
        held, lifeline = os.pipe()
        listener = self._listener.fileno()
        words = (*COMMAND, str(listener), str(tell), str(held), str(self._place), str(number))
        process = await asyncio.create_subprocess_exec(*words, env=self._environment(), pass_fds=(listener, tell, held))
        os.close(tell)
        os.close(held)
        child = Child(process, lifeline, time.monotonic(), ready=False)
        self._children.add(child)
        await self._prepared.wait()
        with contextlib.suppress(BrokenPipeError):  # it has died meanwhile, which is found out in a moment
            os.write(lifeline, b"1")
        child.ready = await self._hears_ready(told, process)
        if not child.ready:
            await process.wait()
        return child

    def _environment(self) -> dict[str, str]:
        """The environment of a process that shares our settings, also those of our command line."""
        return os.environ | {
            "REFRACT_HOST": self._settings.host,
            "REFRACT_PORT": str(self._settings.port),
            "REFRACT_DATA_DIR": str(self._settings.data_dir),
            "REFRACT_WORKERS": str(self._settings.workers),
            "REFRACT_ROLE": self._settings.role,
        }

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

    async def _end(self, child: Child) -> None:
        """See it off, gracefully if it will go so."""
        if child.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._settings.stop_grace_seconds + 2 * HARD_SECONDS):
                await child.process.wait()
        except TimeoutError:
            child.process.kill()
            await child.process.wait()
        if child in self._children:
            self._children.remove(child)
            os.close(child.lifeline)
