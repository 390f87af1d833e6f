"""What can be wrong with a tag."""

from refract.core.errors import Conflict, Invalid, NotFound


class InvalidTag(Invalid):
    """The tag "{name}" is invalid: {why}."""


class TagExists(Conflict):
    """A tag named "{name}" already exists."""


class TagNotFound(NotFound):
    """Tag not found."""


class TagNameReserved(Conflict):
    """The name "{name}" can't be given to another tag: {why}."""


class NothingToMerge(Invalid):
    """Choose at least one tag to merge into the target, other than the target itself."""


class NoTagChange(Conflict):
    """Nothing to undo. You can undo a merge or a deletion for {hours} hours, latest first."""


class AliasNotFound(NotFound):
    """Alias not found."""
