"""Schemas of the library's API."""

from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.library.models import (
    Enrichment,
    ItemStatus,
    ItemType,
    SuggestionSource,
    SuggestionStatus,
)

MAX_TEXT_LENGTH = 10_000
MAX_TITLE_LENGTH = 255
MAX_SUMMARY_LENGTH = 2_000
MAX_NOTES_LENGTH = 10_000
MAX_TAGS = 50
MAX_BULK_ITEMS = 200
MAX_RULES = 200


def _empty_to_none(text: str) -> str | None:
    return text or None


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError(Phrase("Nothing to save. Write or paste something first."))
    return text


CapturedText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TEXT_LENGTH),
    AfterValidator(_check_not_blank),
    Field(
        description="A note, or exactly one URL.",
        examples=["https://example.com/articles/engines"],
    ),
]
ItemTitle = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_TITLE_LENGTH),
    AfterValidator(_empty_to_none),
]
ItemSummary = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_SUMMARY_LENGTH),
    AfterValidator(_empty_to_none),
]
ItemNotes = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_NOTES_LENGTH),
    AfterValidator(_empty_to_none),
]
_UNREAD = "To be read later."
_FAVORITE = "One of your favorites."
_ARCHIVED = (
    "In the archive: left out of the library's list, still found by search. Not the status"
    " `ARCHIVED`, which every saved item has."
)
_NOTES = "Your own words about the item. Suggestions never touch them."
TagIds = Annotated[list[Id], Field(max_length=MAX_TAGS)]
NewTags = Annotated[
    list[Annotated[str, StringConstraints(max_length=200)]],
    Field(
        max_length=MAX_TAGS,
        description="Names of tags; missing ones are created.",
        examples=[["engines"]],
    ),
]
SuggestionIds = Annotated[list[Id], Field(max_length=100)]


class NewItemStates(InputSchema):
    """The reading states and notes that a new item starts with."""

    unread: bool = Field(default=False, description=_UNREAD)
    favorite: bool = Field(default=False, description=_FAVORITE)
    archived: bool = Field(default=False, description=_ARCHIVED)
    notes: Annotated[ItemNotes | None, Field(description=_NOTES)] = None


class ItemCreate(NewItemStates):
    """A text or URL to save."""

    text: CapturedText
    enrich: bool = Field(
        default=True,
        description="Suggest title, summary and tags. `false` saves it to the library immediately.",
    )
    tag_ids: TagIds = Field(default_factory=list)
    new_tags: NewTags = Field(default_factory=list)


class ItemsCreate(NewItemStates):
    """Several texts, or a paste.

    A paste of nothing but URLs, one per line, becomes one item per line.
    """

    texts: Annotated[
        list[str],
        Field(
            min_length=1,
            max_length=MAX_BULK_ITEMS,
            examples=[["https://example.com/a", "A note."]],
        ),
    ] = Field(default_factory=list)
    paste: (
        Annotated[
            str,
            Field(
                max_length=MAX_TEXT_LENGTH * 10,
                examples=["https://example.com/a\nhttps://example.com/b"],
            ),
        ]
        | None
    ) = None
    enrich: bool = True
    tag_ids: TagIds = Field(default_factory=list)
    new_tags: NewTags = Field(default_factory=list)


class ItemPatch(InputSchema):
    """Changes of an item. Omitted fields are unchanged; null clears title, summary and notes."""

    title: ItemTitle | None = None
    summary: ItemSummary | None = None
    notes: Annotated[ItemNotes | None, Field(description=_NOTES)] = None
    text: CapturedText | None = None
    unread: Annotated[bool | None, Field(description=_UNREAD)] = None
    favorite: Annotated[bool | None, Field(description=_FAVORITE)] = None
    archived: Annotated[bool | None, Field(description=_ARCHIVED)] = None
    tag_ids: Annotated[TagIds | None, Field(description="The full set. If omitted, unchanged.")] = (
        None
    )
    new_tags: NewTags = Field(default_factory=list)


class SuggestionDecision(InputSchema):
    """Suggestions to accept, and to reject and never suggest again. The others stay pending."""

    accept: SuggestionIds = Field(default_factory=list)
    reject: SuggestionIds = Field(default_factory=list)


class ItemConfirmation(SuggestionDecision):
    """The fields with which an item is saved to the library."""

    title: ItemTitle | None = None
    summary: ItemSummary | None = None
    tag_ids: Annotated[TagIds | None, Field(description="The full set. If omitted, unchanged.")] = (
        None
    )
    new_tags: NewTags = Field(default_factory=list)


class ItemTagOut(OutputSchema):
    id: Id
    name: str
    color: str


class SuggestionOut(OutputSchema):
    """A suggested tag with its confidence and reason."""

    id: Id
    name: str
    status: SuggestionStatus
    confidence: float
    source: SuggestionSource
    reason: str
    existing: bool = Field(description="Whether you have a tag with this name.")


class ItemOut(OutputSchema):
    """An item. `enrichment` is null until it has been described by a user or by suggestions."""

    id: Id
    text: str
    url: str | None
    title: str | None
    summary: str | None
    notes: str | None = Field(description=_NOTES)
    type: ItemType
    status: ItemStatus
    unread: bool = Field(description=_UNREAD)
    favorite: bool = Field(description=_FAVORITE)
    archived: bool = Field(description=_ARCHIVED)
    enrichment: Enrichment | None
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime | None
    tags: list[ItemTagOut]
    suggestions: list[SuggestionOut]
    duplicate_of: Id | None = Field(description="The first item with the same page.")
    note: str | None = Field(
        description="Why there are no AI suggestions, such as OVER_QUOTA.", examples=["OVER_QUOTA"]
    )
    failure: str | None = Field(description="Why the page could not be fetched or read.")
    version: int


class ItemPage(OutputSchema):
    items: list[ItemOut]
    next_cursor: str | None


class ItemRowError(OutputSchema):
    """Why a text could not be saved."""

    code: str
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)


class ItemRow(OutputSchema):
    index: int
    status: int
    item: ItemOut | None = None
    error: ItemRowError | None = None


class ItemsResult(OutputSchema):
    results: list[ItemRow]
    created: int
    failed: int


class QuotaOut(OutputSchema):
    """Today's quota of AI suggestions (UTC)."""

    limit: int
    used: int
    remaining: int
    resets_at: datetime


class UsageOut(OutputSchema):
    """The storage that a library takes, and its limits."""

    items: int
    items_limit: int | None
    bytes: int = Field(description="Size of texts, notes and pages in UTF-8.")
    bytes_limit: int | None


class QuotaOverride(InputSchema):
    """A limit for one day; null resets it to the plan's."""

    day: date = Field(examples=["2026-12-31"])
    limit: Annotated[int, Field(ge=0, le=1_000_000)] | None


class RuleIn(InputSchema):
    """A rule: items that match the pattern get these tags suggested."""

    pattern: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)
    ] = Field(
        examples=["github.com"],
        description=(
            "A host (`example.com`, `wiki/`), optionally with a port or a path"
            " (`example.com/blog`), or a keyword in quotes."
        ),
    )
    tags: Annotated[
        list[Annotated[str, StringConstraints(max_length=200)]],
        Field(min_length=1, max_length=10, examples=[["code"]]),
    ]


class RuleOut(OutputSchema):
    pattern: str
    tags: list[str]


class RuleList(OutputSchema):
    items: list[RuleOut]
    next_cursor: str | None = None


class RulesPut(InputSchema):
    """All rules, in the order in which they are evaluated."""

    items: Annotated[list[RuleIn], Field(max_length=MAX_RULES)]


def get_given_fields(changes: InputSchema) -> dict[str, Any]:
    """Return the fields that a body has, nulls included."""
    return {name: getattr(changes, name) for name in changes.model_fields_set}  # ids stay numbers
