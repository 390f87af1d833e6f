"""What linkding's clients send, in linkding's words."""

from pydantic import Field

from refract.compat.schemas import ForeignFields


class LinkdingBookmarkFields(ForeignFields):
    """Fields of a bookmark. Those that are absent or null were not given."""

    url: str | None = Field(default=None, max_length=2048)
    title: str | None = None
    description: str | None = None
    notes: str | None = None
    is_archived: bool | None = None
    unread: bool | None = None
    shared: bool | None = None
    tag_names: list[str] | None = None
    date_added: str | None = None
    date_modified: str | None = None


class LinkdingTagFields(ForeignFields):
    """The name of a tag."""

    name: str = Field(min_length=1, max_length=64)
