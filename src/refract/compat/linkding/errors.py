"""What linkding's clients ask for that does not exist here."""

from refract.core.errors import FieldError, Forbidden, Invalid, NotFound


class InvalidBookmark(Invalid):
    """The bookmark is invalid."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(errors=[FieldError(field, message)])


class BookmarkNotFound(NotFound):
    """No Bookmark matches the given query."""


class LinkdingTagNotFound(NotFound):
    """No Tag matches the given query."""


class LinkdingObjectNotFound(NotFound):
    """Not found."""


class UploadsDisabled(Forbidden):
    """Asset upload is disabled."""


class BundlesNotSupported(Forbidden):
    """Bundles can't be changed here."""
