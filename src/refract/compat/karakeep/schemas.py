"""What Karakeep's clients send, in Karakeep's words."""

from typing import Literal

from pydantic import Field

from refract.compat.schemas import ForeignFields
from refract.library.schemas import MAX_TEXT_LENGTH

MAX_TAGS = 100


class KarakeepBookmarkFields(ForeignFields):
    """Fields of a bookmark. Null clears title and summary; what is absent stays."""

    title: str | None = None
    summary: str | None = None
    note: str | None = None
    archived: bool | None = None
    favourited: bool | None = None
    createdAt: str | None = None  # noqa: N815 - Karakeep's name
    url: str | None = Field(default=None, max_length=2048)
    text: str | None = Field(default=None, max_length=MAX_TEXT_LENGTH)
    description: str | None = None
    author: str | None = None
    publisher: str | None = None
    datePublished: str | None = None  # noqa: N815 - Karakeep's name
    dateModified: str | None = None  # noqa: N815 - Karakeep's name


class KarakeepBookmarkCreate(KarakeepBookmarkFields):
    """A new bookmark: a link, a text or a file."""

    type: Literal["link", "text", "asset"]


class KarakeepTagChoice(ForeignFields):
    """A tag by its id or its name."""

    tagId: str | None = None  # noqa: N815 - Karakeep's name
    tagName: str | None = None  # noqa: N815 - Karakeep's name


class KarakeepTagChoices(ForeignFields):
    """Tags to attach or to detach."""

    tags: list[KarakeepTagChoice] = Field(max_length=MAX_TAGS)


class KarakeepTagFields(ForeignFields):
    """The name of a tag."""

    name: str = Field(min_length=1, max_length=64)
