"""Names in the API."""

from pydantic import BaseModel, ConfigDict


class NameIn(BaseModel):
    """A name to add."""

    model_config = ConfigDict(extra="forbid")

    name: str


class NameAvailability(BaseModel):
    """Whether a name is available now. This reserves nothing."""

    name: str
    available: bool
    reason: str | None
    """The error code that claiming it would return."""
    detail: str | None
    """The message of that error."""
