"""What can be wrong with a name."""

from refract.core.errors import Conflict, Invalid


class InvalidSlug(Invalid):
    """The name "{name}" cannot be used: {why}."""


class SlugReserved(Invalid):
    """The name "{name}" is kept for Refract's own pages: choose another."""


class SlugTaken(Conflict):
    """The name "{name}" is already in use."""
