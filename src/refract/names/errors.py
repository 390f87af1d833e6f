"""What can be wrong with a name."""

from refract.core.errors import Conflict, Invalid


class InvalidSlug(Invalid):
    """The name "{name}" is invalid: {why}."""


class SlugReserved(Invalid):
    """The name "{name}" is reserved. Choose another."""


class SlugTaken(Conflict):
    """The name "{name}" is already in use. Choose another."""
