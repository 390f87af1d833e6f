"""The server's side of the extraction processes."""

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

import structlog

from refract.core.extraction.fair_semaphore import FairSemaphore
from refract.core.extraction.tasks import (
    CHUNK,
    DONE,
    FAILED,
    MAX_CHUNK_BYTES,
    REFUSED,
    RESPONSE_HEADER,
    ExtractionCrashed,
    ExtractionError,
    ExtractionTask,
    ExtractionTimeout,
    OutputTooLarge,
    TaskFailed,
    TaskRefused,
    pack_request,
)
from refract.core.import_path import format_import_path
from refract.core.runtime import Runtime

MAX_WAITING_PER_OWNER = 32
"""Tasks that one user, or one network of strangers, may have waiting in a process."""

ANONYMOUS_OWNER = "strangers"
"""The owner of work that belongs to no account: strangers share one place in the queue."""

MAX_TASKS_PER_PROCESS = 1_000
"""Tasks after which an extraction process is replaced, to bound what its libraries accumulate."""

IDLE_SECONDS = 15.0
"""How long an extraction process waits for its next task before it is ended."""


class ExtractionPool:
    """The extraction processes of this server process.

    Started when a task needs one, ended when idle, replaced when a task goes wrong. Nothing that
    they return is trusted, unless the task was alone: its size is bounded, and callers check the
    content.
    """

    def __init__(self, rt: Runtime) -> None:
        self._semaphore = FairSemaphore(rt.settings.extraction_processes, MAX_WAITING_PER_OWNER)
        self._idle: list[_WorkerProcess] = []
        self._workers: set[_WorkerProcess] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("refract.extraction")
        tasks = rt.metrics.counter(
            "refract_extraction_tasks", "Tasks of the extraction processes", ("kind", "outcome")
        )
        waiting = rt.metrics.gauge(
            "refract_extraction_waiting", "Tasks that wait for an extraction process"
        )
        processes = rt.metrics.gauge(
            "refract_extraction_processes", "Extraction processes that run"
        )
        waiting.set_function(lambda: self._semaphore.waiting_count)
        processes.set_function(lambda: len(self._workers))
        self._count = tasks.labels

    async def run(
        self, task: ExtractionTask, body: bytes = b"", *, owner: str, **arguments: Any
    ) -> list[bytes]:
        """Run a task and return the chunks of its result; raises `ExtractionError`.

        Tasks of different owners take turns. Time limits begin when the task starts. Cancelling a
        running task ends its process.
        """
        outcome = "cancelled"
        try:
            async with self._semaphore.acquire(owner, slow=task.slow):
                pieces = await self._run(task, body, arguments)
            outcome = "done"
        except ExtractionError as exc:
            outcome = exc.outcome
            raise
        finally:
            self._count(task.kind, outcome).inc()
        return pieces

    @property
    def process_count(self) -> int:
        """Return the number of processes that run or are being ended."""
        return len(self._workers) + len(self._ending)

    async def close(self) -> None:
        """End all processes."""
        for child in list(self._workers):
            await self._end_worker(child)
        await asyncio.gather(*self._ending)

    async def _run(
        self, task: ExtractionTask, body: bytes, arguments: dict[str, Any]
    ) -> list[bytes]:
        child = (None if task.alone else self._take_idle()) or await self._start_worker()
        healthy = False
        try:
            async with asyncio.timeout(task.wall_seconds):
                pieces = await child.run_task(task, body, arguments)
            healthy = True
        except (TaskRefused, TaskFailed):
            healthy = True
            raise
        except TimeoutError as exc:
            raise ExtractionTimeout from exc
        except (OSError, asyncio.IncompleteReadError, ValueError) as exc:
            raise ExtractionCrashed from exc
        finally:
            if healthy and not task.alone and child.tasks < MAX_TASKS_PER_PROCESS:
                self._keep_idle(child)
            else:
                await asyncio.shield(self._end_worker(child))
        return pieces

    def _keep_idle(self, child: "_WorkerProcess") -> None:
        """Keep a process for the next task. Its libraries take up to 60 MB, so not for long."""
        self._idle.append(child)
        loop = asyncio.get_running_loop()
        child.idle_timer = loop.call_later(IDLE_SECONDS, self._end_idle, child)

    def _end_idle(self, child: "_WorkerProcess") -> None:
        self._idle.remove(child)  # now: no task may take it while it ends
        ending = asyncio.get_running_loop().create_task(self._end_worker(child))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _take_idle(self) -> "_WorkerProcess | None":
        while self._idle:
            child = self._idle.pop()
            child.cancel_idle_timer()
            if child.is_alive:
                return child
            self._workers.discard(child)
        return None

    async def _start_worker(self) -> "_WorkerProcess":
        child = _WorkerProcess(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "refract.core.extraction.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,  # parsers log what they read there
                env={
                    "PYTHONPATH": format_import_path(),
                    "PATH": os.environ.get("PATH", ""),
                    "LANG": "C.UTF-8",
                },
                # Ctrl+C in a terminal is for the server, which ends its children.
                start_new_session=True,
                limit=2 * MAX_CHUNK_BYTES,
            )
        )
        self._workers.add(child)
        return child

    async def _end_worker(self, child: "_WorkerProcess") -> None:
        self._workers.discard(child)
        child.cancel_idle_timer()
        with contextlib.suppress(ValueError):
            self._idle.remove(child)
        code = await child.kill()
        self._log.info("extraction_process_ended", tasks=child.tasks, exit_code=code)


class _WorkerProcess:
    """An extraction process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.tasks = 0
        self.idle_timer: asyncio.TimerHandle | None = None

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    def cancel_idle_timer(self) -> None:
        if self.idle_timer is not None:
            self.idle_timer.cancel()

    async def run_task(
        self, task: ExtractionTask, body: bytes, arguments: dict[str, Any]
    ) -> list[bytes]:
        self.tasks += 1
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise OSError
        stdin.write(
            pack_request(
                body,
                {
                    "function": task.function,
                    "cpu_seconds": task.cpu_seconds,
                    "arguments": arguments,
                },
            )
        )
        await stdin.drain()
        pieces: list[bytes] = []
        size = 0
        while True:
            kind, length = RESPONSE_HEADER.unpack(await stdout.readexactly(RESPONSE_HEADER.size))
            size += length
            if length > MAX_CHUNK_BYTES or size > task.max_output:
                raise OutputTooLarge
            content = await stdout.readexactly(length)
            if kind != CHUNK:
                _raise_worker_error(kind, content)
                return pieces
            pieces.append(content)

    async def kill(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        code = await self._process.wait()
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()
        return code


def _raise_worker_error(kind: int, content: bytes) -> None:
    """Raise the error that the child reports, if any."""
    if kind == REFUSED:
        details = json.loads(content)
        raise TaskRefused(str(details.pop("code")), **details)
    if kind == FAILED:
        raise TaskFailed(content.decode("ascii", "replace")[:100])
    if kind != DONE:
        raise ExtractionCrashed
