"""Throttled logging of errors in loops that go on: once, and then at intervals."""

import time
from typing import Any

from refract.core.db.errors import translate_db_error
from refract.core.errors import Unavailable

REPEAT_INTERVAL = 60.0


class ErrorThrottle:
    """The current error of a loop, and when it was logged last.

    An error that time or an operator can fix is one line; any other has its traceback, the first
    time.
    """

    def __init__(self, log: Any, event: str, **facts: object) -> None:
        self._log = log
        self._event = event
        self._facts = facts
        self._known: str | None = None
        self._last = 0.0
        self._attempts = 0

    def report(self, exc: Exception) -> None:
        """Log an error if it is new, or if its last line is a minute old."""
        known = exc if isinstance(exc, Unavailable) else translate_db_error(exc)
        reason = known.message if known is not None else f"{type(exc).__name__}: {exc}"
        self._attempts += 1
        if reason == self._known and time.monotonic() - self._last < REPEAT_INTERVAL:
            return
        if known is None and reason != self._known:
            self._log.error(self._event, **self._facts, exc_info=exc)
        else:
            self._log.warning(
                self._event, **self._facts, reason=reason[:300], attempts=self._attempts
            )
        self._known, self._last = reason, time.monotonic()

    def clear(self) -> None:
        """Forget the error, so that the next one is logged immediately."""
        self._known, self._attempts = None, 0
