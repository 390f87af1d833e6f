"""What can go wrong with work for later."""

from refract.core.errors import Conflict, NotFound


class LeaseLost(Conflict):
    """Job {job_id} belongs to another worker by now, so this one may not write for it."""


class JobNotFound(NotFound):
    """There is no such job."""


class JobNotDead(Conflict):
    """This job is {status}: only a dead one can be tried again."""


class TryAgain(Exception):
    """Raised by a handler for what may pass by itself. `after` overrules the next pause, as a server's Retry-After would."""

    def __init__(self, code: str, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.after = after
