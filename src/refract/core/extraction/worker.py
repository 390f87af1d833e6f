"""The program of an extraction process: runs tasks from standard input until it ends.

A hostile page can harm only this process: a task over its CPU time or memory ends it, not the
server.
"""

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from refract.core.extraction.tasks import (
    CHUNK,
    DONE,
    FAILED,
    MAX_CHUNK_BYTES,
    REFUSED,
    REQUEST_HEADER,
    TaskRefused,
    pack_response,
)

MEMORY_BYTES = 1024**3
NICENESS = 5
ORPHAN_CHECK_INTERVAL = 1.0


def main() -> None:
    """Serve standard input with a lower priority than the server, and within limits."""
    # MacOS has no such limit; the time limits apply there as well.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))  # wakes up without haste
    with suppress(OSError):  # Linux: when memory runs out, this process is killed before the server
        Path("/proc/self/oom_score_adj").write_text("1000")
    parent = os.getppid()

    def end_if_orphaned(_signal: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, end_if_orphaned)
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Run one task after the other until there are no more."""
    while len(head := requests.read(REQUEST_HEADER.size)) == REQUEST_HEADER.size:
        task_size, body_size = REQUEST_HEADER.unpack(head)
        task = json.loads(requests.read(task_size))
        body = requests.read(body_size)
        signal.setitimer(signal.ITIMER_REAL, ORPHAN_CHECK_INTERVAL, ORPHAN_CHECK_INTERVAL)
        _limit_cpu(task["cpu_seconds"])
        responses.write(_run_task(task, body, responses))
        responses.flush()
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit_cpu(seconds: int) -> None:
    """Let the kernel end this process once the task has used so much CPU time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def _run_task(task: dict[str, Any], body: bytes, responses: BinaryIO) -> bytes:
    try:
        result = _import_function(task["function"])(body, **task["arguments"])
        for piece in (result,) if isinstance(result, bytes) else result:
            responses.writelines(
                pack_response(CHUNK, piece[at : at + MAX_CHUNK_BYTES])
                for at in range(0, len(piece), MAX_CHUNK_BYTES)
            )
    except TaskRefused as exc:
        return pack_response(
            REFUSED, json.dumps({"code": exc.code, **exc.details}).encode()[:MAX_CHUNK_BYTES]
        )
    except BrokenPipeError:
        raise
    except Exception as exc:  # noqa: BLE001 - any failure of a parser is an outcome
        return pack_response(FAILED, type(exc).__name__.encode())
    return pack_response(DONE)


def _import_function(dotted: str) -> Callable[..., bytes | Iterable[bytes]]:
    module, _, name = dotted.partition(":")
    function: Callable[..., bytes | Iterable[bytes]] = getattr(
        importlib.import_module(module), name
    )
    return function


if __name__ == "__main__":
    main()
