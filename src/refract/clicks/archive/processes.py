"""Archived clicks, read in processes of their own.

So DuckDB is not loaded where requests are served: it blocks the interpreter for as long as a call
takes, and its memory stays mapped.

A process takes one function after the other from its standard input, as a pickle, and writes what
each yields to its standard output. It ends when its input does, so none outlives its parent. What
functions keep in their modules (see `clicks.columns.store`) lives as long as the process.
"""

import asyncio
import inspect
import os
import pickle
import struct
import sys
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, asynccontextmanager
from typing import Any, BinaryIO, Final, Literal, ParamSpec, TypeVar, cast

from refract.core.errors import RefractError
from refract.core.import_path import format_import_path
from refract.core.runtime import Runtime

IDLE_SECONDS: Final = 600.0
"""How long a process waits for the next reader: a new one has to load recent clicks again."""
MAX_COUNTERS: Final = 2
_COMMAND: Final = (
    sys.executable,
    "-P",
    "-c",
    "from refract.clicks.archive.processes import main; main()",
)
_LENGTH: Final = struct.Struct("!I")
_Reply = tuple[Literal["item", "end", "refusal", "error"], Any]

ReadArgs = ParamSpec("ReadArgs")
ItemT = TypeVar("ItemT")


class ArchiveReadFailed(Exception):
    """A function failed in its process; the message is its traceback."""


class ArchiveProcess:
    """A process that runs one function at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.is_idle = True
        self.idle_timer: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def call(
        self,
        function: Callable[ReadArgs, ItemT],
        *args: ReadArgs.args,
        **kwargs: ReadArgs.kwargs,
    ) -> ItemT:
        """Call a function of a module in the process, and return what it returns."""
        async with aclosing(self._run(function, args, kwargs)) as results:
            found = [result async for result in results]
        return cast("ItemT", found[0])

    async def run(
        self,
        function: Callable[ReadArgs, Awaitable[ItemT]],
        *args: ReadArgs.args,
        **kwargs: ReadArgs.kwargs,
    ) -> ItemT:
        """Run a coroutine function of a module in the process, and return what it returns."""
        return cast("ItemT", await self.call(function, *args, **kwargs))

    async def iterate(
        self,
        function: Callable[ReadArgs, Generator[ItemT, None, None]],
        *args: ReadArgs.args,
        **kwargs: ReadArgs.kwargs,
    ) -> AsyncGenerator[ItemT, None]:
        """Yield what a generator function of a module yields in the process."""
        async with aclosing(self._run(function, args, kwargs)) as items:
            async for item in items:
                yield item

    async def _run(self, function: Any, args: Any, kwargs: Any) -> AsyncGenerator[Any, None]:
        self.is_idle = False  # until its last reply is read
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        self._process.stdin.write(_pack((function, args, kwargs)))
        await self._process.stdin.drain()
        while True:
            kind, value = await self._receive()
            if kind == "item":
                yield value
                continue
            self.is_idle = True
            if kind == "refusal":
                error, facts = value
                raise error(**facts)
            if kind == "error":
                raise ArchiveReadFailed(value)
            return

    async def _receive(self) -> _Reply:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        try:
            head = await self._process.stdout.readexactly(_LENGTH.size)
            body = await self._process.stdout.readexactly(*_LENGTH.unpack(head))
        except asyncio.IncompleteReadError as exc:
            raise ArchiveReadFailed("The process that reads archived clicks has ended.") from exc
        return cast("_Reply", pickle.loads(body))  # noqa: S301 - written by our own process

    async def close(self) -> None:
        """End the process, no matter what it is doing."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        # Close the pipes and kill. `wait` alone would wait for the end of output that is not read.
        transport: Any = self._process._transport  # type: ignore[attr-defined]  # noqa: SLF001
        transport.close()
        await self._process.wait()


class ArchiveProcesses:
    """The processes of a runtime that read archived clicks. Idle ones stay for a while."""

    def __init__(self, _rt: Runtime) -> None:
        self._all: set[ArchiveProcess] = set()
        self._idle: list[ArchiveProcess] = []
        self._closing: set[asyncio.Task[None]] = set()
        self.counting = asyncio.Semaphore(MAX_COUNTERS)
        """Held while statistics are counted: requests wait instead of starting many processes."""

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[ArchiveProcess]:
        """Yield a process for one reader."""
        process = await self._take_idle() or await self._start()
        try:
            yield process
        finally:
            if process.is_idle and process.is_alive and len(self._idle) < MAX_COUNTERS:
                self._idle.append(process)
                loop = asyncio.get_running_loop()
                process.idle_timer = loop.call_later(IDLE_SECONDS, self._end_idle, process)
            else:
                await asyncio.shield(self._discard(process))

    async def _take_idle(self) -> ArchiveProcess | None:
        """Return the process that was used last, which has most of what is needed in memory."""
        while self._idle:
            process = self._idle.pop()
            if process.idle_timer is not None:
                process.idle_timer.cancel()
            if process.is_alive:
                return process
            await self._discard(process)
        return None

    async def _start(self) -> ArchiveProcess:
        process = ArchiveProcess(
            await asyncio.create_subprocess_exec(
                *_COMMAND,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": format_import_path()},
                # Ctrl+C in a terminal is for the server, which ends its children.
                start_new_session=True,
            )
        )
        self._all.add(process)
        return process

    def _end_idle(self, process: ArchiveProcess) -> None:
        self._idle.remove(process)
        task = asyncio.create_task(self._discard(process))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _discard(self, process: ArchiveProcess) -> None:
        self._all.discard(process)
        await process.close()

    async def close(self) -> None:
        """End all processes."""
        self._idle.clear()
        for process in list(self._all):
            await self._discard(process)


def main() -> None:
    """Run functions from standard input until it ends."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a library prints, such as the progress of a long query, is not a reply.
    os.dup2(2, 1)
    runner = asyncio.Runner()
    while head := source.read(_LENGTH.size):
        function, args, kwargs = pickle.loads(source.read(*_LENGTH.unpack(head)))  # noqa: S301
        try:
            result = function(*args, **kwargs)
            if inspect.iscoroutine(result):
                result = runner.run(result)
            for item in result if inspect.isgenerator(result) else [result]:
                _reply(sink, "item", item)
        except RefractError as exc:
            _reply(sink, "refusal", (type(exc), exc.facts))
        except Exception:  # noqa: BLE001 - raised again in the parent
            _reply(sink, "error", traceback.format_exc())
        else:
            _reply(sink, "end", None)
    os._exit(0)  # without waiting for the threads of database drivers


def _reply(sink: BinaryIO, kind: str, value: object) -> None:
    sink.write(_pack((kind, value)))
    sink.flush()


def _pack(value: object) -> bytes:
    body = pickle.dumps(value)
    return _LENGTH.pack(len(body)) + body
