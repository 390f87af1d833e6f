"""What Karakeep's clients ask for that does not exist here."""

from refract.core.errors import FieldError, Forbidden, Invalid, NotFound


class InvalidKarakeepField(Invalid):
    """The bookmark is invalid."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(errors=[FieldError(field, message)])


class KarakeepBookmarkNotFound(NotFound):
    """Bookmark not found."""


class KarakeepObjectNotFound(NotFound):
    """There's no such thing here."""


class BookmarkListsNotSupported(Forbidden):
    """Bookmarks have tags here and no lists. Use tags instead."""


class HighlightsNotSupported(Forbidden):
    """Highlights can't be kept here."""


class AssetsNotSupported(Forbidden):
    """Files can't be kept here, only links and text."""
