"""Resolution of short link paths. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import quote, unquote

from refract.core.ids import decode_base62
from refract.links.golinks.expansion import ExpansionFailure, expand_template, split_extra_path
from refract.links.golinks.template import DestinationTemplate
from refract.names.grammar import iter_candidates

if TYPE_CHECKING:
    from refract.identity.models import User

FEED_SUFFIXES = ("rss", "json", "md")


class LinkView(StrEnum):
    """The requested view of a link or list."""

    FOLLOW = "follow"
    PREVIEW = "preview"
    QR = "qr"
    FEED = "feed"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class ShortLinkRequest:
    """A parsed path. `name` is decoded; `extra` is the rest of the path as sent."""

    name: str
    view: LinkView = LinkView.FOLLOW
    feed: str = ""
    extra: str = ""
    query: str = ""

    @property
    def segments(self) -> list[str]:
        return split_extra_path(self.extra)

    @property
    def display_name(self) -> str:
        """Return the name for use in messages."""
        return self.name.encode("utf-8", "replace").decode()[:100]


def parse_path(raw_path: bytes, query: bytes = b"") -> ShortLinkRequest:
    """Parse `/name`, `/name/extra`, `/name+`, `/name.qr`, `/name.rss` or `/name.png`.

    Bytes that are not UTF-8 are preserved, and match no name.
    """
    first, _, extra = _decode_bytes(raw_path).removeprefix("/").partition("/")
    name = unquote(first, errors="surrogateescape")
    asked = _decode_bytes(query)
    if name.endswith("+"):
        return ShortLinkRequest(name[:-1], LinkView.PREVIEW, extra=extra, query=asked)
    stem, dot, suffix = name.rpartition(".")
    if dot and suffix.lower() == "qr":
        return ShortLinkRequest(stem, LinkView.QR, extra=extra, query=asked)
    if dot and suffix.lower() in FEED_SUFFIXES:
        return ShortLinkRequest(stem, LinkView.FEED, feed=suffix.lower(), extra=extra, query=asked)
    if dot and suffix.lower() == "png":
        return ShortLinkRequest(stem, LinkView.CARD, extra=extra, query=asked)
    return ShortLinkRequest(name, extra=extra, query=asked)


def parse_typed_path(typed: str) -> ShortLinkRequest:
    """Parse what follows our host in a short URL, as people type it: no slash, perhaps a query."""
    path, _, query = typed.partition("#")[0].partition("?")
    raw = f"/{path}".encode("utf-8", "surrogateescape")
    return parse_path(raw, query.encode("utf-8", "surrogateescape"))


def get_raw_path(scope_path: str, raw_path: bytes | None) -> bytes:
    """Return the path as sent, or the decoded path encoded again if the server has no raw one."""
    return raw_path if raw_path is not None else quote(scope_path).encode()


def _decode_bytes(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


# From a request to its outcome: the only place that defines the order of checks. Exact name, then
# code, then without trailing punctuation; a restricted link first checks the user; then deleted, on
# hold, disabled, blocked, expired; finally whether the extra path fits. `POST /resolve` shares it.

TargetKind = Literal["link", "list", "entry"]
TargetState = Literal["active", "disabled", "expired", "deleted", "blocked", "on_hold"]


class SignedInUser(Protocol):
    """A signed-in user, or an API key of theirs."""

    @property
    def user(self) -> "User": ...

    @property
    def is_admin(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """Everything about a link that its response depends on.

    Of a list only `kind`, `id`, `name`, `status` and `on_hold` are known.
    """

    kind: TargetKind
    id: int
    name: str
    """The name as chosen, or the code: the end of the short URL."""
    by_code: bool = False
    template: DestinationTemplate | None = None
    redirect_status: int = 302
    status: str = "active"
    expires_at: datetime | None = None
    restricted: bool = False
    """Not everyone may open it: it is never cached, and the user is authenticated first."""
    audience: str | None = None
    """Who may open a restricted link besides owners, recipients and administrators."""
    forward_query: bool = False
    blocked: bool = False
    on_hold: bool = False
    """The account of its owner is suspended."""
    flag_reason: str | None = None
    """Why a preview is shown first (a `FlagReason` of links), or None."""
    title: str | None = None
    created_at: datetime | None = None
    version: int = 0
    epoch: int = 0
    """The version of the blocked domains that `blocked` is based on."""
    asked_at: float = float("-inf")
    """Monotonic time when the lookup began: if invalidated since, it must not be cached."""

    @property
    def has_guessable_code(self) -> bool:
        """Return whether it was found by the code of its id, which is near those of other links."""
        return self.by_code and self.kind == "link" and decode_base62(self.name) is not None

    @property
    def is_cacheable(self) -> bool:
        """Return whether every visitor gets the same redirect. Others are never cached."""
        return self.kind == "link" and not (self.restricted or self.on_hold or self.flag_reason)

    def state_at(self, now: datetime) -> TargetState:
        """Return the state at a time. Expiry is exact, independent of any job."""
        if self.status == "deleted":
            return "deleted"
        if self.on_hold:
            return "on_hold"
        if self.status == "disabled":
            return "disabled"
        if self.blocked or self.template is None:
            return "blocked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"


class LinkLookup(Protocol):
    """Lookup of names and codes."""

    async def find(self, text: str) -> RedirectTarget | None:
        """Return the target of a name or a canonical code. Names come first."""

    async def can_open(self, found: RedirectTarget, visitor: SignedInUser) -> bool:
        """Return whether a signed-in visitor may open a restricted link."""

    async def suggest(self, text: str, visitor: SignedInUser | None) -> list[str]:
        """Return at most three similar names that the visitor may know of."""


@dataclass(frozen=True, slots=True)
class RedirectOutcome:
    """A redirect."""

    found: RedirectTarget
    href: str


@dataclass(frozen=True, slots=True)
class WarningOutcome:
    """A flagged link, which redirects after the visitor confirms."""

    found: RedirectTarget
    href: str


@dataclass(frozen=True, slots=True)
class PreviewOutcome:
    """The preview page of a link, or its QR code. `href` is the destination."""

    found: RedirectTarget
    href: str


@dataclass(frozen=True, slots=True)
class ListOutcome:
    """A list: its page, a feed or an entry, left to the list handler."""

    found: RedirectTarget


@dataclass(frozen=True, slots=True)
class MissingOutcome:
    """No target that this visitor may know of."""


@dataclass(frozen=True, slots=True)
class SignInOutcome:
    """A restricted link, and the visitor is not signed in."""

    found: RedirectTarget


@dataclass(frozen=True, slots=True)
class DeadOutcome:
    """A link that does not redirect, because of its state."""

    found: RedirectTarget
    state: TargetState


@dataclass(frozen=True, slots=True)
class MismatchOutcome:
    """A link whose placeholders the requested path does not match."""

    found: RedirectTarget
    reason: str
    usage: str


ResolveOutcome = (
    RedirectOutcome
    | WarningOutcome
    | PreviewOutcome
    | ListOutcome
    | MissingOutcome
    | SignInOutcome
    | DeadOutcome
    | MismatchOutcome
)


async def resolve(
    lookup: LinkLookup,
    request: ShortLinkRequest,
    get_user: Callable[[], Awaitable[SignedInUser | None]],
    now: Callable[[], datetime],
) -> ResolveOutcome:
    """Return the outcome of a request.

    `get_user` is called only if the outcome depends on it, `now` after all slow steps.
    """
    found = await find_target(lookup, request.name)
    if found is not None and found.kind == "list" and found.status != "deleted":
        return DeadOutcome(found, "on_hold") if found.on_hold else ListOutcome(found)
    if found is None or found.kind == "list" or request.view in (LinkView.FEED, LinkView.CARD):
        return MissingOutcome()
    if found.restricted:
        visitor = await get_user()
        if visitor is None or not await lookup.can_open(found, visitor):
            return SignInOutcome(found) if visitor is None else MissingOutcome()
    state = found.state_at(now())
    if state != "active" or found.template is None:
        return DeadOutcome(found, state)
    outcome = apply_path(found, found.template, request)
    return (
        WarningOutcome(found, outcome.href)
        if found.flag_reason and isinstance(outcome, RedirectOutcome)
        else outcome
    )


def is_found_by_guess(outcome: ResolveOutcome) -> bool:
    """Return whether an outcome reveals that the code of an id exists."""
    return (
        not isinstance(outcome, MissingOutcome | ListOutcome) and outcome.found.has_guessable_code
    )


async def find_target(lookup: LinkLookup, name: str) -> RedirectTarget | None:
    """Return the first target among the readings of a path segment, or None."""
    for candidate in iter_candidates(name):
        found = await lookup.find(candidate.text)
        if found is not None:
            return found
    return None


def apply_path(
    found: RedirectTarget, template: DestinationTemplate, request: ShortLinkRequest
) -> RedirectOutcome | PreviewOutcome | MismatchOutcome:
    """Apply the extra path and the query to the destination of an active link."""
    if request.view is not LinkView.FOLLOW and not request.extra:
        return PreviewOutcome(found, template.href)
    href = expand_template(
        template, request.segments, request.query, forward_query=found.forward_query
    )
    if isinstance(href, ExpansionFailure):
        return MismatchOutcome(found, href.reason, template.format_usage(found.name))
    return (
        RedirectOutcome(found, href)
        if request.view is LinkView.FOLLOW
        else PreviewOutcome(found, href)
    )
