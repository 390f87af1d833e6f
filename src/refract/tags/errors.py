"""What can be wrong with a tag."""

from refract.core.errors import Conflict, Invalid, NotFound


class InvalidTag(Invalid):
    """The tag "{name}" cannot be used: {why}."""


class TagExists(Conflict):
    """There is already a tag called "{name}"."""


class TagNotFound(NotFound):
    """There is no such tag."""


class TagNameKept(Conflict):
    """The name "{name}" cannot be given to another tag: {why}."""


class NothingToMerge(Invalid):
    """Name at least one tag that is to become part of the target, and not the target itself."""


class NoTagChange(Conflict):
    """There is nothing to undo about this tag: a merge or a deletion can be undone for {hours} hours, the latest one first."""


class AliasNotFound(NotFound):
    """There is no such alias."""
