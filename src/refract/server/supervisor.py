"""Several server processes behind one socket.

The parent owns the socket, so nothing in its accept queue is lost when a process ends. On SIGHUP it
prepares the database with the installed code, in a separate process, and then replaces the server
processes one by one. It restarts a process that died, and never lets a process that cannot start
replace a healthy one.
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

from refract.core.settings.model import Settings
from refract.server.listener import SHUTDOWN_TIMEOUT, stop_accepting
from refract.server.systemd import notify_ready
from refract.server.terminal import is_terminal_closed

CHILD_COMMAND = (
    sys.executable,
    "-c",
    "import gc; gc.disable(); from refract.server.child import main; main()",
)
PREPARE_COMMAND = (
    sys.executable,
    "-c",
    "import gc; gc.disable(); from refract.server.startup import main; main()",
)
EXIT_SCHEMA_TOO_OLD = 75
"""The exit status of a server process whose code needs a newer schema."""
START_TIMEOUT = 30.0
MIN_LIFETIME_SECONDS = 2.0
MIN_RESTART_SECONDS = 0.25
MAX_RESTART_SECONDS = 10.0


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A server process.

    It has the other end of `lifeline`: a byte on it lets it begin; when it closes, it stops. So no
    orphan outlives the parent.
    """

    process: asyncio.subprocess.Process
    lifeline: int
    started_at: float
    ready: bool


class ProcessSlot:
    """A slot that always has a process. Slots are independent, so that none waits for another."""

    def __init__(
        self,
        spawn: Callable[[], Awaitable[ChildProcess]],
        stop: Callable[[ChildProcess], Awaitable[None]],
    ) -> None:
        self._spawn = spawn
        self._stop = stop
        self._child: ChildProcess | None = None
        self._change_lock = asyncio.Lock()
        self._restart_delay = 0.0
        self._log = structlog.get_logger("refract.supervisor")

    async def run(self) -> None:
        """Start a process, and another one whenever it dies, forever."""
        while True:
            child = self._child
            if child is not None:
                await child.process.wait()
            async with self._change_lock:
                # Otherwise it was replaced on purpose; wait for its successor.
                if self._child is child:
                    await self._restart_child(child)

    async def replace_child(self) -> bool:
        """Replace the process by a new one once that serves; return False if it does not."""
        async with self._change_lock:
            new = await self._spawn()
            if not new.ready:
                self._log.error("replacement_failed", code=new.process.returncode)
                await self._stop(new)
                return False
            old, self._child = self._child, new
        if old is not None:
            await self._stop(old)
        return True

    async def _restart_child(self, dead: ChildProcess | None) -> None:
        """Restart a process that died, with growing delays if they keep dying young."""
        if dead is not None:
            young = time.monotonic() - dead.started_at < MIN_LIFETIME_SECONDS or not dead.ready
            self._restart_delay = (
                min(MAX_RESTART_SECONDS, max(MIN_RESTART_SECONDS, self._restart_delay * 2))
                if young
                else 0.0
            )
            self._log.error(
                "server_process_died",
                code=dead.process.returncode,
                next_in_seconds=self._restart_delay,
            )
            await self._stop(dead)
            self._child = None
            await asyncio.sleep(self._restart_delay)
        self._child = await self._spawn()
        if not self._child.ready:
            self._log.error("server_process_failed", code=self._child.process.returncode)


class ProcessSupervisor:
    """Keeps `settings.workers` processes serving."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        # A short path: a socket's name may have 107 characters.
        self._peers_dir = Path(tempfile.mkdtemp(prefix="refract-"))
        self._slots = [
            ProcessSlot(partial(self._spawn_child, number), self._stop_child)
            for number in range(settings.workers)
        ]
        self._children: set[ChildProcess] = set()
        self._first_start_lock = asyncio.Lock()
        self._prepared = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._replace_requested = asyncio.Event()
        self._prepare_lock = asyncio.Lock()
        self._log = structlog.get_logger("refract.supervisor")

    def mark_prepared(self) -> None:
        """Let processes use the database, which is prepared. Until then they only load."""
        self._prepared.set()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_requested.set)
        loop.add_signal_handler(signal.SIGHUP, self._on_sighup)
        tasks = [
            asyncio.create_task(work)
            for work in (self._run_replacements(), *(slot.run() for slot in self._slots))
        ]
        try:
            await self._wait_until_stopped(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await stop_accepting(self._listener)
            # Otherwise the kernel would go on completing connections that are never served.
            self._listener.close()
            await self.close()

    def _on_sighup(self) -> None:
        (self._stop_requested if is_terminal_closed() else self._replace_requested).set()

    async def _wait_until_stopped(self, tasks: list[asyncio.Task[None]]) -> None:
        stopped = asyncio.create_task(self._stop_requested.wait())
        try:
            done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        for task in done - {stopped}:
            await task  # none of them ends unless it failed

    async def _run_replacements(self) -> None:
        """Replace the processes one by one on request; requests meanwhile are served afterwards."""
        while True:
            await self._replace_requested.wait()
            self._replace_requested.clear()
            if await self.replace_children():
                self._log.info("server_processes_replaced", count=len(self._slots))

    async def replace_children(self) -> bool:
        """Prepare the database with the installed code, then replace every process.

        Return False if one of them fails.
        """
        if not await self._prepare_database():
            return False
        for slot in self._slots:
            if not await slot.replace_child():
                return False
        return True

    async def _prepare_database(self) -> bool:
        """Migrate in a separate process, without a timeout: the old processes go on serving."""
        async with self._prepare_lock:
            process = await asyncio.create_subprocess_exec(
                *PREPARE_COMMAND, env=self._build_environment()
            )
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.terminate()
                await process.wait()
                raise
        if code != 0:
            self._log.error(
                "database_preparation_failed",
                code=code,
                consequence="the running processes are kept",
            )
        return code == 0

    async def close(self) -> None:
        """Stop every process and close the socket."""
        await asyncio.gather(*(self._stop_child(child) for child in list(self._children)))
        self._listener.close()
        shutil.rmtree(self._peers_dir, ignore_errors=True)

    async def _spawn_child(self, number: int) -> ChildProcess:
        """Start a process; if its code needs a newer schema, migrate and start it again.

        That happens when a version was installed meanwhile. While no process serves, one starts
        before the others: started together, all would be late.
        """
        child = await self._spawn_first_alone(number)
        if child.process.returncode == EXIT_SCHEMA_TOO_OLD and await self._prepare_database():
            await self._stop_child(child)
            child = await self._spawn_first_alone(number)
        return child

    async def _spawn_first_alone(self, number: int) -> ChildProcess:
        async with self._first_start_lock:
            if not any(child.ready for child in self._children):
                return await self._start_child(number)
        return await self._start_child(number)

    async def _start_child(self, number: int) -> ChildProcess:
        """Start a process and wait until it accepts connections or fails."""
        ready_reader, ready_writer = os.pipe()
        lifeline_reader, lifeline = os.pipe()
        listener = self._listener.fileno()
        command = (
            *CHILD_COMMAND,
            str(listener),
            str(ready_writer),
            str(lifeline_reader),
            str(self._peers_dir),
            str(number),
        )
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self._build_environment(),
            pass_fds=(listener, ready_writer, lifeline_reader),
        )
        os.close(ready_writer)
        os.close(lifeline_reader)
        child = ChildProcess(process, lifeline, time.monotonic(), ready=False)
        self._children.add(child)
        await self._prepared.wait()
        with contextlib.suppress(BrokenPipeError):  # It has died meanwhile, which is noticed below.
            os.write(lifeline, b"1")
        child.ready = await self._wait_for_ready(ready_reader, process)
        if child.ready:
            notify_ready()
        else:
            await process.wait()
        return child

    def _build_environment(self) -> dict[str, str]:
        """Return the environment of a process with these settings, also those of the CLI."""
        return os.environ | {
            "REFRACT_HOST": self._settings.host,
            "REFRACT_PORT": str(self._settings.port),
            "REFRACT_DATA_DIR": str(self._settings.data_dir),
            "REFRACT_WORKERS": str(self._settings.workers),
            "REFRACT_ROLE": self._settings.role,
        }

    @staticmethod
    async def _wait_for_ready(ready_reader: int, process: asyncio.subprocess.Process) -> bool:
        """Wait for the byte that the child writes when it serves; its death closes the pipe."""
        loop = asyncio.get_running_loop()
        is_ready: asyncio.Future[bool] = loop.create_future()

        def on_readable() -> None:
            if not is_ready.done():
                is_ready.set_result(os.read(ready_reader, 1) == b"1")

        loop.add_reader(ready_reader, on_readable)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                return await is_ready
        except TimeoutError:
            process.kill()
            return False
        finally:
            loop.remove_reader(ready_reader)
            os.close(ready_reader)

    async def _stop_child(self, child: ChildProcess) -> None:
        """Stop a process, gracefully if it responds."""
        if child.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._settings.stop_grace_seconds + 2 * SHUTDOWN_TIMEOUT):
                await child.process.wait()
        except TimeoutError:
            child.process.kill()
            await child.process.wait()
        if child in self._children:
            self._children.remove(child)
            os.close(child.lifeline)
