"""Links in the API."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic.json_schema import SkipJsonSchema

from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema, Timestamp
from refract.core.urls import BadUrl, parse_web_url
from refract.domains.schemas import DomainHost
from refract.links.enums import FlagReason, InvitedRole, LinkState, Visibility
from refract.links.preview_cards import MAX_CARD_DESCRIPTION, PreviewCard, format_card
from refract.links.qr_styles import (
    MAX_MARGIN,
    PLAIN_STYLE,
    QrCorrection,
    QrShape,
    QrStyle,
    find_contrast_problem,
    format_style,
)
from refract.links.rules.schemas import NewLinkRules
from refract.teams.schemas import TeamHandle

MAX_NAMES = 50
MAX_TAGS = 20
MAX_BULK_LINKS = 1_000


def _none_if_empty(text: str) -> str | None:
    return text or None


LinkTitle = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=200), AfterValidator(_none_if_empty)
]
LinkNotes = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_none_if_empty)]
LinkDestination = Annotated[
    str, Field(json_schema_extra={"maxLength": 2048}, examples=["https://example.com/plans/2027"])
]
RedirectStatus = Literal[301, 302, 307, 308]
LinkTags = Annotated[
    list[str],
    Field(
        max_length=200,
        description=f"Shared tags, at most {MAX_TAGS}.",
        examples=[["Engineering Tools"]],
    ),
]


LinkPassword = Annotated[
    str,
    StringConstraints(min_length=4, max_length=128),
    Field(json_schema_extra={"format": "password", "writeOnly": True}, examples=[None]),
]


def _check_image_url(text: str) -> str | None:
    if not text.strip():
        return None
    try:
        url = parse_web_url(text)
    except BadUrl as exc:
        raise ValueError(exc.args[0]) from exc
    if url.scheme != "https":
        raise ValueError(Phrase("Enter a URL that begins with https://."))
    return url.href


CardDescription = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_CARD_DESCRIPTION),
    AfterValidator(_none_if_empty),
]
CardImageUrl = Annotated[
    str, Field(json_schema_extra={"maxLength": 2048}), AfterValidator(_check_image_url)
]


class PreviewCardIn(InputSchema):
    """What chats show of a link. Crawlers of chats get it as a page, people are redirected."""

    title: LinkTitle | None = Field(default=None, examples=["Plans for 2027"])
    description: CardDescription | None = Field(
        default=None, examples=["What we build next, and what we don't."]
    )
    image_url: CardImageUrl | None = Field(
        default=None,
        description="A picture by its https URL, best 1200 × 630 pixels.",
        examples=["https://example.com/plans.png"],
    )

    def to_column(self) -> str | None:
        """Return the column of the card, empty for a card without any part."""
        return format_card(PreviewCard(self.title, self.description, self.image_url))


class PreviewCardOut(OutputSchema):
    """What chats show of a link. Null parts are left to the chat."""

    title: str | None
    description: str | None
    image_url: str | None


MAX_CLICK_LIMIT = 1_000_000_000
ClickLimit = Annotated[int, Field(ge=1, le=MAX_CLICK_LIMIT)]


def _parse_color(value: Any) -> Any:
    """Return `#rrggbb` in lower case. The hash sign may be left out, as URLs give it a meaning."""
    if not isinstance(value, str):
        return value
    digits = value.strip().lower().removeprefix("#")
    if len(digits) != 6 or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(Phrase("Enter a color of six digits, like #1d4ed8."))
    return f"#{digits}"


def _to_upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


QrColor = Annotated[
    str,
    BeforeValidator(_parse_color),
    Field(json_schema_extra={"pattern": "^#?[0-9A-Fa-f]{6}$"}),
]


class QrStyleIn(InputSchema):
    """The looks of a QR code. What is left out is as usual."""

    color: QrColor = Field(default=PLAIN_STYLE.color, examples=["#1d4ed8"])
    background: QrColor = Field(
        default=PLAIN_STYLE.background,
        validate_default=True,
        description="Much lighter than the color, or scanners fail.",
    )
    margin: Annotated[StrictInt, Field(ge=0, le=MAX_MARGIN)] = Field(
        default=PLAIN_STYLE.margin,
        description="Empty modules around the code. Scanners expect 4.",
    )
    correction: Annotated[QrCorrection, BeforeValidator(_to_upper)] = Field(
        default=PLAIN_STYLE.correction,
        description="How much of it may be damaged: L 7, M 15, Q 25, H 30 percent.",
    )
    shape: QrShape = PLAIN_STYLE.shape
    logo: StrictBool = Field(
        default=PLAIN_STYLE.logo,
        description="The mark of Refract in the middle. The correction is H then.",
    )

    @field_validator("background")
    @classmethod
    def _check_contrast(cls, background: str, info: ValidationInfo) -> str:
        color = info.data.get("color")
        if color and (problem := find_contrast_problem(color, background)) is not None:
            raise ValueError(problem)
        return background

    def to_style(self) -> QrStyle:
        return QrStyle(**self.model_dump())

    def to_column(self) -> str:
        return format_style(self.to_style())

    @classmethod
    def from_style(cls, style: QrStyle, changes: Mapping[str, Any]) -> "QrStyleIn":
        """Return a style with changes from outside, checked. They may be texts of a query."""
        given = asdict(style) | dict(changes)
        margin, logo = str(given["margin"]), str(given["logo"]).lower()
        if margin.isascii() and margin.isdigit() and len(margin) < 3:
            given["margin"] = int(margin)
        if logo in ("true", "false"):
            given["logo"] = logo == "true"
        return cls.model_validate(given)


class QrStyleOut(OutputSchema):
    """The looks of a QR code."""

    color: str
    background: str
    margin: int
    correction: QrCorrection
    shape: QrShape
    logo: bool


class LinkCreate(InputSchema):
    """A link to create."""

    destination: LinkDestination
    names: Annotated[
        list[str],
        Field(
            max_length=MAX_NAMES,
            description="Names of the link, which become its paths.",
            examples=[["roadmap"]],
        ),
    ] = Field(default_factory=list)
    domain: DomainHost | None = Field(
        default=None,
        description="The host of the domain on which it lives. Omitted: the default domain.",
        examples=["sho.rt"],
    )
    title: LinkTitle | None = None
    notes: LinkNotes | None = None
    tags: LinkTags = Field(default_factory=list)
    redirect_status: RedirectStatus = Field(
        default=302, description="Omitted: the default of its domain, which is 302 on most."
    )
    visibility: Visibility | None = Field(
        default=None,
        description="Omitted: the operator's default, which is `unlisted` unless configured.",
    )
    team: TeamHandle | None = Field(
        default=None,
        description="The handle of a team of yours that shall own it. Omitted: you do.",
        examples=[None],
    )
    forward_query: bool = Field(
        default=False, description="Merge the query of the request into the destination's."
    )
    noindex: bool = Field(
        default=False,
        description="Ask search engines not to list the short URL (`X-Robots-Tag: noindex`).",
    )
    expires_at: Timestamp | None = None
    expired_destination: LinkDestination | None = Field(
        default=None,
        description="Where it redirects after it has expired. Omitted: a page says so.",
        examples=[None],
    )
    starts_at: Timestamp | None = Field(default=None, description="It doesn't redirect earlier.")
    before_destination: LinkDestination | None = Field(
        default=None,
        description="Where it redirects before it starts. Omitted: a page says so.",
        examples=[None],
    )
    click_limit: ClickLimit | None = Field(
        default=None,
        description=(
            "How many times it redirects, bots excluded. Below 10, visitors press a button first."
        ),
        examples=[None],
    )
    limit_destination: LinkDestination | None = Field(
        default=None,
        description="Where it redirects once the limit is reached. Omitted: a page says so.",
        examples=[None],
    )
    password: LinkPassword | None = Field(
        default=None,
        description="Visitors are asked for it. It makes the visibility `password`.",
    )
    rules: NewLinkRules = Field(default_factory=list)
    preview_card: PreviewCardIn | None = Field(
        default=None,
        description="What chats show of it. Omitted: what they find at the destination.",
        examples=[None],
    )
    qr_style: QrStyleIn | None = Field(
        default=None,
        description="The looks of its QR code. Omitted: your default.",
        examples=[None],
    )
    utm_template: Id | None = Field(
        default=None,
        description=(
            "A UTM template, whose parameters replace those that the destination has by their name."
        ),
        examples=[None],
    )
    find_if_exists: bool = Field(
        default=False,
        description=(
            "Return your existing link with this destination, if any, instead of creating another."
        ),
    )


class LinkPatch(InputSchema):
    """The fields to change. Absent fields stay; null clears texts, times, limits and other URLs."""

    destination: LinkDestination | SkipJsonSchema[None] = None
    title: LinkTitle | None = None
    notes: LinkNotes | None = None
    tags: LinkTags | SkipJsonSchema[None] = None
    redirect_status: RedirectStatus | SkipJsonSchema[None] = None
    visibility: Visibility | SkipJsonSchema[None] = None
    forward_query: bool | SkipJsonSchema[None] = None
    noindex: bool | SkipJsonSchema[None] = None
    expires_at: Timestamp | None = None
    expired_destination: LinkDestination | None = None
    starts_at: Timestamp | None = None
    before_destination: LinkDestination | None = None
    click_limit: ClickLimit | None = None
    limit_destination: LinkDestination | None = None
    password: LinkPassword | SkipJsonSchema[None] = Field(
        default=None,
        description="A new password. Another visibility than `password` removes it.",
    )
    preview_card: PreviewCardIn | None = Field(
        default=None, description="All of the card. Null removes it.", examples=[None]
    )
    qr_style: QrStyleIn | None = Field(
        default=None, description="All of the style. Null: your default again.", examples=[None]
    )
    utm_template: Id | SkipJsonSchema[None] = Field(
        default=None,
        description="A UTM template, to set its parameters in the destination.",
        examples=[None],
    )

    @field_validator(
        *("destination", "tags", "redirect_status", "visibility", "forward_query", "password"),
        "noindex",
        "utm_template",
    )
    @classmethod
    def _not_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError(Phrase("This can't be null. Leave it out to keep the current value."))
        return value


class LinkOwnerOut(OutputSchema):
    """An owner of a link."""

    user_id: Id
    name: str
    email: str | None = Field(description="Only owners and administrators see it.")
    primary: bool
    added_at: datetime


class LinkTeamOut(OutputSchema):
    """A team that owns a link. Its members are co-owners."""

    team_id: Id
    slug: str
    name: str
    primary: bool = Field(description="Whether it's the primary owner: its managers may transfer.")
    added_at: datetime


class LinkShareOut(OutputSchema):
    """A user whom a link is shared with."""

    user_id: Id
    name: str
    email: str
    added_at: datetime


class InvitationOut(OutputSchema):
    """An invitation to own a link, open until it is accepted, declined, withdrawn or expired."""

    id: Id
    link_id: Id
    short_url: str
    destination: str
    title: str | None
    role: InvitedRole = Field(
        description="`owner`: become a co-owner. `primary`: become the primary owner."
    )
    inviter: str = Field(description="The name of the sender.")
    invitee: str = Field(description="The name of the invited person.")
    email: str | None = Field(
        description="The email of the invited person, for those who manage the link."
    )
    created_at: datetime
    expires_at: datetime


class InvitationCreated(OutputSchema):
    """The result of adding an owner: an invitation."""

    invitation: InvitationOut


class InvitationList(OutputSchema):
    """All open invitations of a link."""

    items: list[InvitationOut]


class InvitationPage(OutputSchema):
    """The caller's invitations, newest first."""

    items: list[InvitationOut]
    next_cursor: str | None


class NameIn(InputSchema):
    """A name to add."""

    name: str
    domain: DomainHost | None = Field(
        default=None,
        description="The host of the domain on which it is. Omitted: the default domain.",
        examples=["sho.rt"],
    )


class LinkAddress(OutputSchema):
    """A name or the code of a link, and the URL that it makes."""

    domain: str
    name: str
    url: str
    exact: bool = Field(
        description="Whether it's a code kept by an import, which must be spelled exactly so."
    )


class LinkOut(OutputSchema):
    """A link. Click counts are null for callers who may not see its analytics."""

    id: Id
    code: str
    domain: str = Field(description="The host of the domain on which it lives.")
    short_url: str
    names: list[str] = Field(description="Its names on its domain.")
    addresses: list[LinkAddress] = Field(
        description="All its short URLs by name, on all domains; without names there, by code."
    )
    destination: str
    title: str | None
    notes: str | None
    tags: list[str]
    redirect_status: RedirectStatus
    visibility: Visibility
    status: LinkState
    expires_at: datetime | None
    expired_destination: str | None
    starts_at: datetime | None = Field(description="Until then it doesn't redirect.")
    before_destination: str | None
    preview_card: PreviewCardOut | None
    click_limit: int | None = Field(description="How many times it redirects.")
    clicks_left: int | None = Field(
        description="How many of these are left. Null: there is no limit."
    )
    limit_destination: str | None
    qr_style: QrStyleOut | None = Field(description="Null: the default of its primary owner.")
    created_at: datetime
    updated_at: datetime
    total_clicks: int | None
    bot_clicks: int | None
    last_clicked_at: datetime | None
    flagged: bool = Field(description="Visitors see a preview first.")
    flag_reason: FlagReason | None = Field(description="Why it is flagged.")
    forward_query: bool
    noindex: bool
    version: int
    owners: list[LinkOwnerOut]
    teams: list[LinkTeamOut]


class LinksPage(OutputSchema):
    items: list[LinkOut]
    next_cursor: str | None


class BulkCreate(InputSchema):
    """Many links to create. Each row succeeds or fails on its own."""

    links: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1,
            max_length=MAX_BULK_LINKS,
            description="Rows in the shape of `POST /links`.",
            examples=[[{"destination": "https://example.com/"}]],
        ),
    ]
    dry_run: bool = Field(
        default=False, description="Validate every row without creating anything."
    )


class BulkRowError(OutputSchema):
    """Why a row was rejected."""

    code: str
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)


class BulkRow(OutputSchema):
    """The result of a row: 201 created, 200 found, or the status of its error."""

    index: int
    status: int
    link: LinkOut | None = None
    error: BulkRowError | None = None


class BulkResult(OutputSchema):
    results: list[BulkRow]
    created: int
    failed: int


class LinkRenewal(InputSchema):
    """A new expiry, or none."""

    expires_at: Timestamp | None = None


class PersonIn(InputSchema):
    """A user, by the verified email address of their account."""

    email: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=3, max_length=255)
    ] = Field(examples=["ada@example.com"])


class TeamDefaults(InputSchema):
    """What new links of a team get if their creator chooses nothing else."""

    domain: DomainHost | None = Field(
        default=None, description="The host of a domain. Omitted: the default domain."
    )
    tags: LinkTags = Field(default_factory=list)


class LinkTeamIn(InputSchema):
    """A team of the caller's, by its handle."""

    team: TeamHandle = Field(examples=["marketing"])
    primary: bool = Field(
        default=False,
        description="Make it the primary owner. Only the primary owner may do this.",
    )


class LinkTeamList(OutputSchema):
    items: list[LinkTeamOut]
    next_cursor: str | None = None


class OwnerList(OutputSchema):
    items: list[LinkOwnerOut]
    next_cursor: str | None = None


class ShareList(OutputSchema):
    items: list[LinkShareOut]
    next_cursor: str | None = None


class VersionOut(OutputSchema):
    """A version of a link: who made it, and what changed."""

    version: int
    at: datetime
    actor_id: Id | None
    action: str
    changes: dict[str, Any]


class VersionPage(OutputSchema):
    items: list[VersionOut]
    next_cursor: str | None
