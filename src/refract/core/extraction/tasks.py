"""Tasks of the extraction processes: their limits, their outcomes and the bytes of both. Pure."""

import json
import struct
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    """A function that runs in an extraction process, and its limits.

    `function` is `module:name`, imported only by the child, so that core knows no feature and the
    server loads no parser. It is called with the body and the arguments of `ExtractionPool.run`,
    and returns or yields bytes.
    """

    kind: str
    function: str
    cpu_seconds: int
    wall_seconds: float
    max_output: int
    slow: bool = False
    """Slow tasks leave one process to the others, where there are two."""
    alone: bool = False
    """Whether it gets a process of its own, which then ends: it loads much, or is trusted."""


class ExtractionError(Exception):
    """A task without a result. Its message contains no content."""

    outcome: ClassVar[str] = "failed"


class ExtractionBusy(ExtractionError):
    """Too many tasks of the same owner are waiting."""

    outcome = "busy"


class ExtractionTimeout(ExtractionError):
    """The task exceeded its time."""

    outcome = "timed_out"


class ExtractionCrashed(ExtractionError):
    """The process ended during the task: out of memory, out of CPU time, or killed."""

    outcome = "crashed"


class OutputTooLarge(ExtractionError):
    """The task wrote more than allowed."""

    outcome = "too_large"


class TaskFailed(ExtractionError):
    """The task raised an unexpected exception."""


class TaskRefused(ExtractionError):
    """Raised by a task's function about its input, with a code and details for the caller."""

    outcome = "refused"

    def __init__(self, code: str, **details: str | int) -> None:
        self.code = code
        self.details = details
        super().__init__(code)


# The bytes between server and extraction process: a request, then chunks and an outcome.

REQUEST_HEADER = struct.Struct("!II")
"""Lengths of the JSON that names the task, and of the body after it."""

RESPONSE_HEADER = struct.Struct("!BI")
"""The kind of what follows (`CHUNK`, `DONE`, `REFUSED`, `FAILED`), and its length."""

CHUNK, DONE, REFUSED, FAILED = range(4)
MAX_CHUNK_BYTES = 256 * 1024
"""Bytes of one chunk, which the server's event loop handles without yielding."""


def pack_request(body: bytes, task: dict[str, Any]) -> bytes:
    head = json.dumps(task).encode()
    return REQUEST_HEADER.pack(len(head), len(body)) + head + body


def pack_response(kind: int, content: bytes = b"") -> bytes:
    return RESPONSE_HEADER.pack(kind, len(content)) + content
