"""Errors of statistics requests."""

from refract.core.errors import FieldError, Invalid, Unavailable
from refract.core.phrases import Phrase


class InvalidRange(Invalid):
    """`from` must be earlier than `to`, and both must be within range."""

    def __init__(self) -> None:
        super().__init__(errors=[FieldError("from", Phrase("Choose a time before `to`."))])


class FilterRequired(Invalid):
    """Clicks on the links of everyone are counted with a filter only, such as `domain`."""

    def __init__(self) -> None:
        super().__init__(errors=[FieldError("domain", Phrase("Choose a domain."))])


class TooManyPoints(Invalid):
    """A series can have at most {limit} points.

    Choose a shorter period or a coarser granularity.
    """

    def __init__(self, *, limit: int) -> None:
        super().__init__(
            errors=[
                FieldError(
                    "granularity", Phrase("Choose a coarser granularity or a shorter period.")
                )
            ],
            limit=limit,
        )


class TooManyStreams(Unavailable):
    """Too many live streams are open. Try again in a moment."""


class TooManyExports(Unavailable):
    """Too many exports are running. Try again in a moment."""
