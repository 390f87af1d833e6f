"""Errors of background jobs."""

from refract.core.errors import Conflict, NotFound


class LeaseLost(Conflict):
    """Job {job_id} was leased to another worker, so this one can't write for it."""


class JobNotFound(NotFound):
    """Job not found."""


class JobNotDead(Conflict):
    """This job is {status}. Only dead jobs can be retried."""


class TryAgain(Exception):
    """Raised by a handler for a transient failure.

    `after` overrides the next pause, as a server's Retry-After would.
    """

    def __init__(self, code: str, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.after = after
