"""What can be wrong with a question about statistics."""

from refract.core.errors import FieldError, Invalid, Unavailable


class InvalidRange(Invalid):
    """There is no time between from and to: give a from that lies before to, neither of them beyond every calendar."""

    def __init__(self) -> None:
        super().__init__(errors=[FieldError("from", "Choose a moment before to.")])


class TooManyPoints(Invalid):
    """A series has at most {most} points: choose a shorter time or a coarser granularity."""

    def __init__(self, *, most: int) -> None:
        super().__init__(
            errors=[FieldError("granularity", "Choose a coarser one, or a shorter time.")],
            most=most,
        )


class TooManyStreams(Unavailable):
    """Too many live streams are open here already: try again in a moment."""


class TooManyExports(Unavailable):
    """Other exports are being written already: try again in a moment."""
