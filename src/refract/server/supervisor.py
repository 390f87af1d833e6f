"""Serving processes behind one socket, and under role `all` the one that redirects for them.

The parent owns the socket, and the queues in which processes pass connections to each other, so
nothing that waits in one is lost when a process ends. On SIGHUP it
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
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from refract.server.connection_queue import open_connection_queue
from refract.server.fork_client import ForkedProcess, ForkServer
from refract.server.listener import SHUTDOWN_TIMEOUT, stop_accepting
from refract.server.process_slot import ChildProcess, ProcessSlot
from refract.server.systemd import feed_watchdog, notify_ready, notify_stopping
from refract.server.terminal import is_terminal_closed

SERVING_ENTRY_POINT = "refract.server.process:main"
REDIRECT_ENTRY_POINT = "refract.server.redirect_process:main"
PREPARE_ENTRY_POINT = "refract.server.startup:main"
EXIT_SCHEMA_TOO_OLD = 75
"""The exit status of a server process whose code needs a newer schema."""
START_TIMEOUT = 30.0
REDIRECT_NAME = "redirect"
"""The name of the redirecting process in metrics. The others have numbers."""


class SupervisorSettings(Protocol):
    """The settings of a supervisor, which doesn't load those of the program."""

    @property
    def workers(self) -> int: ...

    @property
    def has_redirect_process(self) -> bool: ...

    @property
    def stop_grace_seconds(self) -> float: ...


class ProcessSupervisor:
    """Keeps `settings.workers` processes serving, and one redirecting for role `all`."""

    def __init__(
        self,
        settings: SupervisorSettings,
        listener: socket.socket,
        environment: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._listener = listener
        # A short path: a socket's name may have 107 characters.
        self._peers_dir = Path(tempfile.mkdtemp(prefix="refract-"))
        names = [str(number) for number in range(settings.workers)]
        self._queues: list[socket.socket] = []
        if settings.has_redirect_process:
            names.insert(0, REDIRECT_NAME)
            self._queues = [*open_connection_queue(), *open_connection_queue()]
        self._slots = [
            ProcessSlot(partial(self._spawn_child, name), self._stop_child) for name in names
        ]
        self._children: set[ChildProcess] = set()
        self._first_start_lock = asyncio.Lock()
        self._prepared = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._replace_requested = asyncio.Event()
        self._prepare_lock = asyncio.Lock()
        self._fork_server = ForkServer(environment)
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
        watchdog = asyncio.create_task(feed_watchdog(self._is_serving))
        try:
            await self._wait_until_stopped(tasks)
        finally:
            notify_stopping()
            for task in (*tasks, watchdog):
                task.cancel()
            await asyncio.gather(*tasks, watchdog, return_exceptions=True)
            await stop_accepting(self._listener)
            # Otherwise the kernel would go on completing connections that are never served.
            self._listener.close()
            await self.close()

    def _is_serving(self) -> bool:
        """Return whether a process serves. While the database is prepared none can."""
        return not self._prepared.is_set() or any(
            child.ready and child.process.returncode is None for child in self._children
        )

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
        await self._fork_server.retire()
        if not await self._prepare_database():
            return False
        # The redirecting process last: it passes on to new ones what old ones may not know.
        for slot in reversed(self._slots):
            if not await slot.replace_child():
                return False
        return True

    async def _prepare_database(self) -> bool:
        """Migrate in a separate process, without a timeout: the old processes go on serving."""
        async with self._prepare_lock:
            code = await self.run_to_end("refract: preparing", PREPARE_ENTRY_POINT)
        if code != 0:
            self._log.error(
                "database_preparation_failed",
                code=code,
                consequence="the running processes are kept",
            )
        return code == 0

    async def run_to_end(self, title: str, entry_point: str) -> int:
        """Run an entry point in a separate process, and return its exit status."""
        process = await self._fork_server.fork(title, entry_point)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            process.send_signal(signal.SIGTERM)
            await process.wait()
            raise

    async def close(self) -> None:
        """Stop every process and close the sockets."""
        # The redirecting process first: until its end it passes connections to the others, which
        # close them with their next response.
        for child in self._children:
            child.process.send_signal(signal.SIGTERM)
        for first in ({REDIRECT_NAME}, {child.name for child in self._children}):
            await asyncio.gather(
                *(self._stop_child(child) for child in list(self._children) if child.name in first)
            )
        await self._fork_server.retire()
        for end in (self._listener, *self._queues):
            end.close()
        shutil.rmtree(self._peers_dir, ignore_errors=True)

    async def _spawn_child(self, name: str) -> ChildProcess:
        """Start a process; if its code needs a newer schema, migrate and start it again.

        That happens when a version was installed meanwhile. While no process serves, one starts
        before the others: started together, all would be late.
        """
        child = await self._spawn_first_alone(name)
        if child.process.returncode == EXIT_SCHEMA_TOO_OLD and await self._prepare_database():
            await self._stop_child(child)
            child = await self._spawn_first_alone(name)
        return child

    async def _spawn_first_alone(self, name: str) -> ChildProcess:
        async with self._first_start_lock:
            if not any(child.ready for child in self._children):
                return await self._start_child(name)
        return await self._start_child(name)

    async def _start_child(self, name: str) -> ChildProcess:
        """Start a process and wait until it works or fails."""
        ready_reader, ready_writer = os.pipe()
        lifeline_reader, lifeline = os.pipe()
        serves = name != REDIRECT_NAME
        process = await self._fork_server.fork(
            f"refract: serving {name}" if serves else "refract: redirecting",
            SERVING_ENTRY_POINT if serves else REDIRECT_ENTRY_POINT,
            (str(self._peers_dir), name),
            (ready_writer, lifeline_reader, *self._list_sockets(name)),
        )
        os.close(ready_writer)
        os.close(lifeline_reader)
        child = ChildProcess(name, process, lifeline, time.monotonic(), ready=False)
        self._children.add(child)
        await self._prepared.wait()
        with contextlib.suppress(BrokenPipeError):  # It has died meanwhile, which is noticed below.
            os.write(lifeline, b"1")
        child.ready = await self._wait_for_ready(ready_reader, process)
        if not child.ready:
            await process.wait()
        elif serves:
            notify_ready()
        return child

    def _list_sockets(self, name: str) -> list[int]:
        """Return the sockets of a process: the listener, or where it gets connections from."""
        listener = self._listener.fileno()
        if not self._queues:
            return [listener]
        pages_receiver, pages_sender, links_receiver, links_sender = (
            end.fileno() for end in self._queues
        )
        if name == REDIRECT_NAME:
            return [listener, links_receiver, pages_sender]
        return [pages_receiver, links_sender]

    @staticmethod
    async def _wait_for_ready(ready_reader: int, process: ForkedProcess) -> bool:
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
            child.process.send_signal(signal.SIGTERM)
        child.cut_lifeline()
        try:
            async with asyncio.timeout(self._settings.stop_grace_seconds + 2 * SHUTDOWN_TIMEOUT):
                await child.process.wait()
        except TimeoutError:
            child.process.kill()
            await child.process.wait()
        if child in self._children:
            self._children.remove(child)
