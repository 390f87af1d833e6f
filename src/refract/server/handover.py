"""Reload of a process that serves alone: it starts its successor, hands over the socket and stays.

It stays as the successor's parent and keeps its process id, so `systemctl reload` works as with
several processes. From then on the supervisor takes over.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import structlog

from refract.core.settings.model import Settings
from refract.server.parent import build_environment
from refract.server.supervisor import ProcessSupervisor


class ListenerHandover:
    """The handover from a process that serves alone to a parent with one child."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._task: asyncio.Task[None] | None = None
        self._supervisor: ProcessSupervisor | None = None
        self._log = structlog.get_logger("refract.server")

    def start(self, hand_over: Callable[[], None]) -> None:
        """Start a successor and call `hand_over` once it serves. If it fails, nothing changes."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._start_successor(hand_over), name="handover")

    async def _start_successor(self, hand_over: Callable[[], None]) -> None:
        supervisor = ProcessSupervisor(
            self._settings, self._listener.dup(), build_environment(self._settings)
        )
        supervisor.mark_prepared()
        replaced = False
        try:
            replaced = await supervisor.replace_children()
        finally:
            if not replaced:
                await supervisor.close()
        if not replaced:
            return
        self._log.info("server_processes_replaced", count=1)
        self._supervisor = supervisor
        hand_over()
        await supervisor.run()

    async def wait_until_finished(self) -> None:
        """Supervise the successor until it is stopped, or cancel an incomplete handover."""
        if self._task is None:
            return
        if self._supervisor is None:
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
