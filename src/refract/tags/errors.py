"""What can be wrong with a tag."""

from refract.core.errors import Conflict, Invalid, NotFound


class InvalidTag(Invalid):
    """The tag "{name}" cannot be used: {why}."""


class TagExists(Conflict):
    """There is already a tag called "{name}"."""


class TagNotFound(NotFound):
    """There is no such tag."""
