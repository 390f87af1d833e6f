"""Names in the API."""

from pydantic import BaseModel


class NameAvailability(BaseModel):
    """Whether a name is available now. This reserves nothing."""

    name: str
    available: bool
    reason: str | None
    """The error code that claiming it would return."""
    detail: str | None
    """The message of that error."""
