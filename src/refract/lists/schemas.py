"""Request and response schemas of lists."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.domains.schemas import DomainHost
from refract.lists.appearance import Cover, Layout, Palette
from refract.lists.models import FetchStatus, ListEvent, ListStatus
from refract.teams.schemas import TeamHandle

MAX_ENTRIES = 1_000
MAX_BATCH_ENTRIES = 200
MAX_SECTIONS = 50
MAX_URL_LENGTH = 2_000


def _none_if_empty(text: str) -> str | None:
    return text or None


ListTitle = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=200), AfterValidator(_none_if_empty)
]
ListDescription = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=2000), AfterValidator(_none_if_empty)
]
SectionTitle = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)
]
EntryUrl = Annotated[
    str,
    Field(
        json_schema_extra={"maxLength": MAX_URL_LENGTH}, examples=["https://example.com/reading"]
    ),
]


class ListCreate(InputSchema):
    """A new list."""

    domain: DomainHost | None = Field(
        default=None,
        description="The host of the domain on which it is published. Omitted: the default domain.",
    )
    team: TeamHandle | None = Field(
        default=None,
        description="The handle of a team of yours that shall own it. Omitted: you do.",
    )
    title: ListTitle | None = Field(default=None, examples=["Reading for new people"])
    description: ListDescription | None = None
    palette: Palette | None = Field(default=None, description="The colours of the public page.")
    layout: Layout | None = Field(default=None, description="The layout of the public page.")
    cover: Cover | None = Field(default=None, description="The picture above the title.")
    shows_author: bool = Field(
        default=False, description="Show your name on the public page, never your email address."
    )


class ListPatch(InputSchema):
    """Changes of a draft. Omitted fields are unchanged; null clears a field."""

    title: ListTitle | None = None
    description: ListDescription | None = None
    palette: Palette | None = Field(
        default=None, description="The colours of the public page; null for the default."
    )
    layout: Layout | None = Field(
        default=None, description="The layout of the public page; null for the default."
    )
    cover: Cover | None = Field(
        default=None, description="The picture above the title; null for none."
    )
    shows_author: bool = Field(
        default=False, description="Show your name on the public page, never your email address."
    )


class ListTransfer(InputSchema):
    """The new owner of a list."""

    team: TeamHandle | None = Field(
        description="The handle of a team of yours; null for yourself.", examples=["marketing"]
    )


class EntriesCreate(InputSchema):
    """One URL, or several. A URL without a scheme gets https."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["url"]}, {"required": ["urls"]}]}
    )

    url: EntryUrl | SkipJsonSchema[None] = None
    urls: (
        Annotated[list[EntryUrl], Field(min_length=1, max_length=MAX_BATCH_ENTRIES)]
        | SkipJsonSchema[None]
    ) = None

    @model_validator(mode="after")
    def _either(self) -> "EntriesCreate":
        if (self.url is None) == (self.urls is None):
            raise ValueError(Phrase("Send either `url` or `urls`."))
        return self


class EntryPatch(InputSchema):
    """Changes of an entry. Omitted fields are unchanged; null clears a field.

    A new `url` is fetched: it fills title and description unless you wrote them.
    """

    url: EntryUrl | SkipJsonSchema[None] = None
    title: ListTitle | None = None
    description: ListDescription | None = None


class SectionCreate(InputSchema):
    """A heading above the entry at `position`; by default below all entries."""

    title: SectionTitle = Field(examples=["Start here"])
    position: Annotated[int, Field(ge=1, le=MAX_ENTRIES + 1)] | SkipJsonSchema[None] = None


class SectionPatch(InputSchema):
    """Changes of a section. Omitted fields are unchanged."""

    title: SectionTitle | SkipJsonSchema[None] = Field(default=None, examples=["Start here"])
    position: Annotated[int, Field(ge=1, le=MAX_ENTRIES + 1)] | SkipJsonSchema[None] = None


class SectionPlace(InputSchema):
    """The new position of a section."""

    id: Id
    position: Annotated[int, Field(ge=1, le=MAX_ENTRIES + 1)]


class EntryOrder(InputSchema):
    """The ids of all entries of the list, in the new order, and the places of its sections."""

    entry_ids: Annotated[list[Id], Field(max_length=MAX_ENTRIES)]
    sections: (
        Annotated[list[SectionPlace], Field(max_length=MAX_SECTIONS)] | SkipJsonSchema[None]
    ) = Field(default=None, description="All sections. Omit to keep their positions.")


class SlugIn(InputSchema):
    """The name for a draft when it is published; null to generate one."""

    slug: str | None = Field(examples=["reading-list"])


class PublishIn(InputSchema):
    """An optional name, set before publishing."""

    slug: str | SkipJsonSchema[None] = Field(default=None, examples=["reading-list"])


class EntryOut(OutputSchema):
    """An entry. `duplicate`: an earlier entry has the same normalized URL."""

    id: Id
    url: str
    normalized_url: str
    title: str | None
    description: str | None
    image: str | None
    fetch_status: FetchStatus
    position: int
    duplicate: bool
    link_id: Id | None = Field(description="Your link whose destination this entry follows.")
    state: str = Field(
        description=(
            "`live`, `blocked` (its domain is blocked) or `gone` (the link it follows is"
            " unavailable)."
        )
    )
    clicks: int = Field(description="Clicks, without bots.")


class SectionOut(OutputSchema):
    """A heading, and the position of the first entry below it."""

    id: Id
    title: str = Field(examples=["Start here"])
    position: int


class ListTeam(OutputSchema):
    """The team that owns a list. Its members can edit the list."""

    team_id: Id
    slug: str
    name: str


class ListSummary(OutputSchema):
    """A list without its entries. `url` is null until it is published."""

    id: Id
    title: str | None
    description: str | None
    palette: Palette
    layout: Layout
    cover: Cover
    shows_author: bool
    slug: str | None
    domain: str = Field(description="The host of the domain on which it is published.")
    team: ListTeam | None = Field(description="The team that owns the list, if one does.")
    version: int
    status: ListStatus
    on_hold: bool = Field(description="The owner's account is suspended, so the page returns 410.")
    edition: int | None
    replaces: str | None = Field(
        default=None, description="The URL whose page a draft of a new edition will replace."
    )
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None
    url: str | None
    views: int = Field(description="Views of the published page, without bots.")
    entry_count: int


class ListOut(ListSummary):
    """A list with its entries and the headings between them."""

    sections: list[SectionOut]
    entries: list[EntryOut]


class ListsPage(OutputSchema):
    items: list[ListSummary]
    next_cursor: str | None


class EntryError(OutputSchema):
    """The reason why a URL was not added."""

    code: str
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)


class EntryResult(OutputSchema):
    """The result for one URL: 201 if it was added, else the status of its error."""

    index: int
    status: int
    entry: EntryOut | None = None
    error: EntryError | None = None


class EntriesResult(OutputSchema):
    results: list[EntryResult]
    created: int
    failed: int


class ClaimResult(OutputSchema):
    """The lists that you own now."""

    claimed: int
    list_ids: list[Id]


class PublicEntry(OutputSchema):
    position: int
    section: str | None = Field(description="The heading above the entry and those after it.")
    url: str
    title: str | None
    description: str | None
    image: str | None


class PublicList(OutputSchema):
    """A published list."""

    slug: str
    title: str | None
    description: str | None
    palette: Palette
    layout: Layout
    cover: Cover
    author: str | None = Field(description="The name of the owner, if the list shows it.")
    edition: int
    latest_edition: int
    published_at: datetime
    url: str
    entries: list[PublicEntry]


def build_entry_error(refused: Any) -> EntryError:
    errors = [{"field": error.field, "message": error.message} for error in refused.errors]
    return EntryError(code=refused.code, detail=refused.message, errors=errors)


class ListActionOut(OutputSchema):
    """A publication or deletion of a list, with the name it had then."""

    list_id: Id
    edition: int | None = Field(examples=[1])
    event: ListEvent
    slug: str | None = Field(examples=["reading"])
    created_at: datetime


class ListActions(OutputSchema):
    """The latest actions on a list and its editions. They are kept for 90 days."""

    items: list[ListActionOut]
