"""How a fetch can end badly: one class per ending.

The message is the class's own sentence and may be shown to anybody; `detail` may name addresses, which are somebody's: it is
for whoever debugs, and stands in no log.
"""

from typing import ClassVar


class FetchError(Exception):
    """The page could not be fetched."""

    kind: ClassVar[str] = "failed"
    again: bool = False  # may the same request succeed later?

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(self.message)

    @property
    def message(self) -> str:
        return " ".join((type(self).__doc__ or "").split())


class Unreachable(FetchError):
    """The address could not be reached."""

    kind = "unreachable"
    again = True


class RefusedAddress(Unreachable):
    """The address could not be reached."""

    # To the outside the same as Unreachable: who asks for an internal name must not learn that it exists.
    again = False


class TimedOut(FetchError):
    """The server took too long to answer."""

    kind = "timed_out"
    again = True


class TooLarge(FetchError):
    """The page is too large."""

    kind = "too_large"


class BadAnswer(FetchError):
    """The server's answer could not be understood."""

    kind = "bad_answer"


class TooManyRedirects(FetchError):
    """The address leads from one redirect to the next without end."""

    kind = "too_many_redirects"


class NotAPage(FetchError):
    """There is no page at this address, but something else."""

    kind = "not_a_page"


class BadStatus(FetchError):
    """The server answered with an error."""

    kind = "bad_status"

    def __init__(self, status: int) -> None:
        self.status = status
        self.again = status in (408, 425, 429) or status >= 500
        super().__init__(f"status {status}")
