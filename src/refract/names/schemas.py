"""Names as the API speaks of them."""

from pydantic import BaseModel, ConfigDict


class NameIn(BaseModel):
    """A name wished for."""

    model_config = ConfigDict(extra="forbid")

    name: str


class NameAvailability(BaseModel):
    """Whether a name could be had now. Nobody is promised it: the first to ask gets it."""

    name: str
    available: bool
    reason: str | None
    """The error code that asking for it would bring."""
    detail: str | None
    """The same as a sentence."""
