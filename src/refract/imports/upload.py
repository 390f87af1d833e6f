"""Uploaded files, read in an extraction process.

They are megabytes of untrusted HTML, CSV or JSON. The process writes two lines per row, so that the
server reads a piece at a time and parses no more than it needs.
"""

from typing import Any

from refract.core.errors import Unavailable
from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import (
    ExtractionBusy,
    ExtractionError,
    ExtractionTask,
    TaskRefused,
)
from refract.core.runtime import Runtime
from refract.records.errors import UnreadableFile


class ImportsBusy(Unavailable):
    """Your other files are still being read. Try again in a moment."""


def build_task(kind: str, function: str) -> ExtractionTask:
    """Return the task that reads a file by this function."""
    return ExtractionTask(
        kind,
        function,
        cpu_seconds=30,
        wall_seconds=120.0,
        max_output=128 * 1024 * 1024,
        slow=True,
    )


async def read_rows(
    rt: Runtime, task: ExtractionTask, user_id: int, body: bytes, **arguments: Any
) -> list[bytes]:
    """Return what a task wrote about a file.

    Raises `UnreadableFile` if the format is unknown or the file takes too long to read.
    """
    try:
        return await rt.singleton(ExtractionPool).run(task, body, owner=str(user_id), **arguments)
    except TaskRefused as exc:
        raise UnreadableFile(problem=str(exc.details["problem"])) from exc
    except ExtractionBusy as exc:
        raise ImportsBusy from exc
    except ExtractionError as exc:
        problem = "The file takes too long to read. Split it and import the parts."
        raise UnreadableFile(problem=problem) from exc
