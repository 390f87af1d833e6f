"""The program of an extraction process: one task after the other from standard input, until that ends.

Whatever a page does to a parser it does here: a task over its CPU time or memory ends this process, not the server.
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

from refract.core.extraction.frames import (
    CHUNK,
    DONE,
    FAILED,
    MAX_CHUNK_BYTES,
    REFUSED,
    REQUEST_HEADER,
    pack_response,
)
from refract.core.extraction.tasks import TaskRefused

MEMORY_BYTES = 1024**3
NICENESS = 5
ORPHAN_CHECK_INTERVAL = 1.0


def main() -> None:
    """Serve standard input with less priority than the server, and within limits."""
    with suppress(
        ValueError, OSError
    ):  # macOS knows no such limit; the limits of time hold there as well
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with suppress(OSError):
        os.nice(NICENESS)
    with suppress(OSError):  # Linux: where memory runs out, this process goes before the server
        Path("/proc/self/oom_score_adj").write_text("1000")
    parent = os.getppid()

    def end_if_orphaned(_signal: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, end_if_orphaned)
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Work on one question after the other until there are no more."""
    while len(head := questions.read(REQUEST_HEADER.size)) == REQUEST_HEADER.size:
        named_size, body_size = REQUEST_HEADER.unpack(head)
        named = json.loads(questions.read(named_size))
        body = questions.read(body_size)
        signal.setitimer(signal.ITIMER_REAL, ORPHAN_CHECK_INTERVAL, ORPHAN_CHECK_INTERVAL)
        _limit_cpu(named["cpu_seconds"])
        answers.write(_run_task(named, body, answers))
        answers.flush()
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit_cpu(seconds: int) -> None:
    """Have the kernel end this process once the task has used so much CPU time."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, hard))


def _run_task(named: dict[str, Any], body: bytes, answers: BinaryIO) -> bytes:
    try:
        result = _import_function(named["function"])(body, **named["arguments"])
        for piece in (result,) if isinstance(result, bytes) else result:
            answers.writelines(
                pack_response(CHUNK, piece[at : at + MAX_CHUNK_BYTES])
                for at in range(0, len(piece), MAX_CHUNK_BYTES)
            )
    except TaskRefused as exc:
        return pack_response(
            REFUSED, json.dumps({"code": exc.code, **exc.details}).encode()[:MAX_CHUNK_BYTES]
        )
    except BrokenPipeError:
        raise
    except Exception as exc:  # noqa: BLE001 - whatever a page does to a parser is an answer
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
