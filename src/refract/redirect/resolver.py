"""What a path outside our own pages asks for: pure."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol
from urllib.parse import quote, unquote

from refract.core.ids import decode_base62
from refract.identity.models import User
from refract.links.golinks.expansion import ExpansionFailure, expand_template, split_extra_path
from refract.links.golinks.template import DestinationTemplate
from refract.names.grammar import iter_candidates

FEED_SUFFIXES = ("rss", "json", "md")


class LinkView(StrEnum):
    """What is wanted of a link or a list."""

    FOLLOW = "follow"
    PREVIEW = "preview"
    QR = "qr"
    FEED = "feed"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class ShortLinkRequest:
    """A path taken apart. `name` is decoded; `extra` is the rest of the path as it was sent."""

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
        """The name as it may stand in a sentence."""
        return self.name.encode("utf-8", "replace").decode()[:100]


def parse_path(raw_path: bytes, query: bytes = b"") -> ShortLinkRequest:
    """`/name`, `/name/extra`, `/name+`, `/name.qr`, `/name.rss`, `/name.png`. Bytes that are no UTF-8 survive, and then name nothing."""
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


# From a wish to what becomes of it: the one place that knows the order of the questions.
# Exact name, then code, then forgiveness; a restricted link asks who is there before it says anything; then blocked, deleted, disabled,
# expired; and at last whether the extra path fits. `POST /resolve` and the redirect itself both go through here.

TargetKind = Literal["link", "list", "entry"]
TargetState = Literal["active", "disabled", "expired", "deleted", "blocked", "on_hold"]


class SignedInUser(Protocol):
    """Somebody signed in, or a key that speaks for them."""

    @property
    def user(self) -> User: ...

    @property
    def is_admin(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """Everything about a link that its answer depends on. Of a list only `kind`, `id`, `name`, `status` and `on_hold` are known."""

    kind: TargetKind
    id: int
    name: str
    """The name as it was chosen, or the code: what the short URL ends with."""
    by_code: bool = False
    template: DestinationTemplate | None = None
    redirect_status: int = 302
    status: str = "active"
    expires_at: datetime | None = None
    restricted: bool = False
    """Not everyone may follow it: it is kept in no cache, and who asks is found out first."""
    audience: str | None = None
    """Who may follow a restricted link beside owners, recipients and administrators."""
    forward_query: bool = False
    blocked: bool = False
    on_hold: bool = False
    """Whoever owns it is suspended, links and all."""
    flag_reason: str | None = None
    """Why a preview is shown before it redirects (a `FlagReason` of links); None where none is."""
    title: str | None = None
    created_at: datetime | None = None
    version: int = 0
    epoch: int = 0
    """Which list of blocked domains `blocked` was judged by."""
    asked_at: float = float("-inf")
    """When somebody set out to find this, in monotonic seconds: what was forgotten since must not be kept."""

    @property
    def has_guessable_code(self) -> bool:
        """Whether it was found by the code of its id, which is near the codes of other links."""
        return self.by_code and self.kind == "link" and decode_base62(self.name) is not None

    @property
    def is_cacheable(self) -> bool:
        """Whether every visitor gets the same redirect. Others are never in L1, L2 or the lane."""
        return self.kind == "link" and not (self.restricted or self.on_hold or self.flag_reason)

    def state_at(self, now: datetime) -> TargetState:
        """Expiry is a fact about time, to the instant, whatever a job has marked."""
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
    """Who knows the names."""

    async def find(self, text: str) -> RedirectTarget | None:
        """Return the target of a name or a canonical code. Names come first."""

    async def can_open(self, found: RedirectTarget, visitor: SignedInUser) -> bool:
        """Return whether a visitor who is signed in may follow a restricted link."""

    async def suggest(self, text: str, visitor: SignedInUser | None) -> list[str]:
        """At most three names that may have been meant and that the visitor may know of."""


@dataclass(frozen=True, slots=True)
class RedirectOutcome:
    """A redirect."""

    found: RedirectTarget
    href: str


@dataclass(frozen=True, slots=True)
class WarningOutcome:
    """A redirect that the visitor confirms first: the link is flagged."""

    found: RedirectTarget
    href: str


@dataclass(frozen=True, slots=True)
class PreviewOutcome:
    """A page about the link, or its QR code. `href` is where it would lead."""

    found: RedirectTarget
    href: str


@dataclass(frozen=True, slots=True)
class ListOutcome:
    """A list's own page, its feed, or one of its entries: the lists' business."""

    found: RedirectTarget


@dataclass(frozen=True, slots=True)
class MissingOutcome:
    """Nothing that this visitor may know of."""


@dataclass(frozen=True, slots=True)
class SignInOutcome:
    """A restricted link, and nobody is signed in."""

    found: RedirectTarget


@dataclass(frozen=True, slots=True)
class DeadOutcome:
    """A link that leads nowhere."""

    found: RedirectTarget
    state: TargetState


@dataclass(frozen=True, slots=True)
class MismatchOutcome:
    """The link is there, but the path that was asked for does not fit it."""

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
    """`who` is asked only when the answer depends on it, `now` after everything that takes time."""
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
    """Return whether an outcome tells that the code of an id exists."""
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
    """Put the extra path and the query into a live link's destination."""
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
