"""Tasks of the extraction processes: their limits, and how one can end."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    """A function that runs in an extraction process, and what it may use there.

    `function` is `module:name`, imported by the child alone, so that core knows no feature and the server loads no parser. It is
    called with the body and the arguments of `ExtractionPool.run`, and returns or yields bytes.
    """

    kind: str
    function: str
    cpu_seconds: int
    wall_seconds: float
    max_output: int
    slow: bool = False
    """Slow tasks leave one process to the others, where there are two."""


class ExtractionError(Exception):
    """A task brought no result. Its message names no content."""

    outcome: ClassVar[str] = "failed"


class ExtractionBusy(ExtractionError):
    """Too many tasks of the same person are waiting."""

    outcome = "busy"


class ExtractionTimeout(ExtractionError):
    """The task used more time than it may."""

    outcome = "timed_out"


class ExtractionCrashed(ExtractionError):
    """The process ended in mid-task: out of memory, out of CPU time, or killed."""

    outcome = "crashed"


class OutputTooLarge(ExtractionError):
    """The task wrote more than it may."""

    outcome = "too_large"


class TaskFailed(ExtractionError):
    """The task raised an exception that it does not know."""


class TaskRefused(ExtractionError):
    """Raised by a task's function about its input, with a code and details that the caller understands."""

    outcome = "refused"

    def __init__(self, code: str, **details: str | int) -> None:
        self.code = code
        self.details = details
        super().__init__(code)
