"""The ways in which a fetch can fail: one class each.

The message is the docstring of the class and may be shown to everyone. `detail` may contain
addresses of others: it is for debugging, and is never logged.
"""

from typing import ClassVar


class FetchError(Exception):
    """The page couldn't be fetched."""

    kind: ClassVar[str] = "failed"
    is_transient: bool = False  # whether the same request may succeed later

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(self.message)

    @property
    def message(self) -> str:
        return " ".join((type(self).__doc__ or "").split())


class Unreachable(FetchError):
    """The page couldn't be reached."""

    kind = "unreachable"
    is_transient = True


class RefusedAddress(Unreachable):
    """The page couldn't be reached."""

    # Looks the same as Unreachable from outside: a request for an internal name must not reveal
    # that it exists.
    is_transient = False


class TimedOut(FetchError):
    """The server took too long to respond."""

    kind = "timed_out"
    is_transient = True


class TooLarge(FetchError):
    """The page is too large."""

    kind = "too_large"


class BadAnswer(FetchError):
    """The server's response couldn't be read."""

    kind = "bad_answer"


class TooManyRedirects(FetchError):
    """The URL redirects too many times."""

    kind = "too_many_redirects"


class NotAPage(FetchError):
    """The URL isn't a web page."""

    kind = "not_a_page"


class BadStatus(FetchError):
    """The server responded with an error."""

    kind = "bad_status"

    def __init__(self, status: int) -> None:
        self.status = status
        self.is_transient = status in (408, 425, 429) or status >= 500
        super().__init__(f"status {status}")
