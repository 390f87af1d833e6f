"""The server's side of the extraction processes."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import structlog

import refract
from refract.core.extraction.frames import ANSWER, DONE, FAILED, MAX_PIECE, PIECE, REFUSED, pack_question
from refract.core.extraction.tasks import (
    ExtractionCrashed,
    ExtractionError,
    ExtractionTask,
    ExtractionTimeout,
    OutputTooLarge,
    TaskFailed,
    TaskRefused,
)
from refract.core.extraction.turns import FairTurns
from refract.core.runtime import Runtime

MAX_WAITING = 32
"""Tasks that one person, or one network of strangers, may have waiting in a process."""

STRANGERS = "strangers"
"""The owner of work that belongs to no account: strangers share one place in the queue."""

MAX_TASKS = 1_000
"""Tasks after which an extraction process is replaced, whatever its libraries have kept by then."""


class ExtractionPool:
    """Extraction processes of this server process: started with the first task, replaced when a task goes wrong.

    Nothing that comes back is trusted: its size is bounded, and callers check what they read.
    """

    def __init__(self, rt: Runtime) -> None:
        self._turns = FairTurns(rt.settings.extraction_processes, MAX_WAITING)
        self._idle: list[_Child] = []
        self._children: set[_Child] = set()
        self._log = structlog.get_logger("refract.extraction")
        tasks = rt.metrics.counter("refract_extraction_tasks", "Tasks of the extraction processes", ("kind", "outcome"))
        waiting = rt.metrics.gauge("refract_extraction_waiting", "Tasks that wait for an extraction process")
        processes = rt.metrics.gauge("refract_extraction_processes", "Extraction processes that run")
        waiting.set_function(lambda: self._turns.waiting)
        processes.set_function(lambda: len(self._children))
        self._count = tasks.labels

    async def run(self, task: ExtractionTask, body: bytes = b"", *, owner: str, **arguments: Any) -> list[bytes]:
        """Run a task for somebody and return the pieces of its result; raises `ExtractionError`.

        Tasks of different owners take turns. The limits of time begin with the task's own turn. Cancelled, a task that runs
        takes its process with it.
        """
        outcome = "cancelled"
        try:
            async with self._turns.turn(owner, slow=task.slow):
                pieces = await self._run(task, body, arguments)
            outcome = "done"
        except ExtractionError as exc:
            outcome = exc.outcome
            raise
        finally:
            self._count(task.kind, outcome).inc()
        return pieces

    async def close(self) -> None:
        """End all processes."""
        for child in list(self._children):
            await self._end(child)

    async def _run(self, task: ExtractionTask, body: bytes, arguments: dict[str, Any]) -> list[bytes]:
        child = self._take_idle() or await self._start()
        healthy = False
        try:
            async with asyncio.timeout(task.wall_seconds):
                pieces = await child.ask(task, body, arguments)
            healthy = True
        except (TaskRefused, TaskFailed):
            healthy = True
            raise
        except TimeoutError as exc:
            raise ExtractionTimeout from exc
        except (OSError, asyncio.IncompleteReadError, ValueError) as exc:
            raise ExtractionCrashed from exc
        finally:
            if healthy and child.tasks < MAX_TASKS:
                self._idle.append(child)
            else:
                await asyncio.shield(self._end(child))
        return pieces

    def _take_idle(self) -> "_Child | None":
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._children.discard(child)
        return None

    async def _start(self) -> "_Child":
        child = _Child(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "refract.core.extraction.child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,  # parsers write about what they read there
                env={"PYTHONPATH": str(Path(refract.__file__).parents[1]), "PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
                start_new_session=True,  # an interrupt on the terminal is for the server, which ends its children
                limit=2 * MAX_PIECE,
            )
        )
        self._children.add(child)
        return child

    async def _end(self, child: "_Child") -> None:
        self._children.discard(child)
        with contextlib.suppress(ValueError):
            self._idle.remove(child)
        code = await child.end()
        self._log.info("extraction_process_ended", tasks=child.tasks, exit_code=code)


class _Child:
    """One extraction process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.tasks = 0

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, task: ExtractionTask, body: bytes, arguments: dict[str, Any]) -> list[bytes]:
        self.tasks += 1
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise OSError
        stdin.write(pack_question(body, {"function": task.function, "cpu_seconds": task.cpu_seconds, "arguments": arguments}))
        await stdin.drain()
        pieces: list[bytes] = []
        size = 0
        while True:
            kind, length = ANSWER.unpack(await stdout.readexactly(ANSWER.size))
            size += length
            if length > MAX_PIECE or size > task.max_output:
                raise OutputTooLarge
            content = await stdout.readexactly(length)
            if kind != PIECE:
                _check_end(kind, content)
                return pieces
            pieces.append(content)

    async def end(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        code = await self._process.wait()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()
        return code


def _check_end(kind: int, content: bytes) -> None:
    """Raise what the child reports, if it reports an error."""
    if kind == REFUSED:
        details = json.loads(content)
        raise TaskRefused(str(details.pop("code")), **details)
    if kind == FAILED:
        raise TaskFailed(content.decode("ascii", "replace")[:100])
    if kind != DONE:
        raise ExtractionCrashed
