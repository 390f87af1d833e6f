"""Resolution of short link paths. Pure."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote, unquote

from refract.core.ids import decode_base62
from refract.links.enums import Visibility
from refract.links.golinks.expansion import ExpansionFailure, expand_template, split_extra_path
from refract.links.golinks.template import DestinationTemplate
from refract.links.preview_cards import PreviewCard
from refract.names.grammar import iter_candidates, join_code, join_name, list_kept_candidates

if TYPE_CHECKING:
    from refract.identity.models import User

MIN_DIRECT_LIMIT = 10
"""Links with a lower click limit are opened by a button."""
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
    """A parsed path. `name` is decoded; `extra` is the rest of the path as sent.

    `host` is the domain of the request, empty for the default one.
    """

    name: str
    view: LinkView = LinkView.FOLLOW
    feed: str = ""
    extra: str = ""
    query: str = ""
    host: str = ""
    path: str = ""
    """The whole path without its first slash, decoded."""

    @property
    def segments(self) -> list[str]:
        return split_extra_path(self.extra)

    def fit(self, found: "RedirectTarget") -> "ShortLinkRequest":
        """Return the request as it was read if this was found: of a kept code, all of its path."""
        is_whole = found.is_kept and found.name == self.path
        return (
            replace(self, name=self.path, view=LinkView.FOLLOW, feed="", extra="")
            if is_whole
            else self
        )

    @property
    def display_name(self) -> str:
        """Return the name for use in messages."""
        return self.name.encode("utf-8", "replace").decode()[:100]


def parse_path(raw_path: bytes, query: bytes = b"", host: str = "") -> ShortLinkRequest:
    """Parse `/name`, `/name/extra`, `/name+`, `/name.qr`, `/name.rss` or `/name.png`.

    Bytes that are not UTF-8 are preserved, and match no name.
    """
    path = _decode_bytes(raw_path).removeprefix("/")
    first, _, extra = path.partition("/")
    name = unquote(first, errors="surrogateescape")
    build = partial(
        ShortLinkRequest,
        extra=extra,
        query=_decode_bytes(query),
        host=host,
        path=unquote(path, errors="surrogateescape"),
    )
    if name.endswith("+"):
        return build(name[:-1], LinkView.PREVIEW)
    stem, dot, suffix = name.rpartition(".")
    if dot and suffix.lower() == "qr":
        return build(stem, LinkView.QR)
    if dot and suffix.lower() in FEED_SUFFIXES:
        return build(stem, LinkView.FEED, feed=suffix.lower())
    if dot and suffix.lower() == "png":
        return build(stem, LinkView.CARD)
    return build(name)


def build_cache_key(host: str, raw_path: bytes) -> bytes:
    """Return the key of a raw path in the cache of redirects."""
    return host.encode() + raw_path


def parse_cache_key(key: bytes) -> ShortLinkRequest:
    """Parse the path and the domain in a key of the cache."""
    host, _, path = key.partition(b"/")
    return parse_path(b"/" + path, host=host.decode())


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
# hold, disabled, blocked, expired, not started, limit reached; then the password; then whether the
# extra path fits; finally crawlers of chats get the preview card. `POST /resolve` shares it.

TargetKind = Literal["link", "list", "entry"]
TargetState = Literal[
    "active", "scheduled", "disabled", "expired", "limit_reached", "deleted", "blocked", "on_hold"
]


class SignedInUser(Protocol):
    """A signed-in user, or an API key of theirs."""

    @property
    def user(self) -> "User": ...

    @property
    def is_admin(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class TargetRule:
    """A rule of a link, with the conditions of `links.rules.schemas.RuleConditions` as JSON."""

    number: int
    template: DestinationTemplate | None
    conditions: Mapping[str, Any]
    blocked: bool = False

    @property
    def is_active(self) -> bool:
        """Return whether it is tried at all: its destination is valid and not blocked."""
        return self.template is not None and not self.blocked


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """Everything about a link that its response depends on.

    `name` is the name or code by which it was found, `host` the domain of that name, empty for the
    default one. Of a list only these two and `kind`, `id`, `status` and `on_hold` are known.
    """

    kind: TargetKind
    id: int
    name: str
    """The name as chosen, or the code: the end of the short URL."""
    by_code: bool = False
    is_kept: bool = False
    """Whether it was found by a code that an import has kept."""
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
    host: str = ""
    epoch: int = 0
    """The version of the blocked domains that `blocked` is based on."""
    asked_at: float = float("-inf")
    """Monotonic time when the lookup began: if invalidated since, it must not be cached."""
    password_hash: str | None = None
    starts_at: datetime | None = None
    before_destination: str | None = None
    """Where it leads before it starts, or None for a page that says so."""
    expired_destination: str | None = None
    rules: tuple[TargetRule, ...] = ()
    unread_rules: str | None = None
    """The column of its rules while it asks for a password: see `LinkLookup.read_rules`."""
    preview_card: PreviewCard | None = None
    """What crawlers of chats get instead of the redirect."""
    noindex: bool = False
    """Whether search engines are asked not to list it."""
    click_limit: int | None = None
    """How many times it redirects; then it is never cached, and each time is counted first."""
    clicks_taken: int = 0
    """How many of these are taken."""
    limit_destination: str | None = None
    chosen: TargetRule | None = None
    """The rule that decided for this visitor; None until then, and if none matches."""

    @property
    def active_template(self) -> DestinationTemplate | None:
        """Return the destination for this visitor."""
        return self.template if self.chosen is None else self.chosen.template

    @property
    def asks_password(self) -> bool:
        return self.audience == Visibility.PASSWORD

    @property
    def has_guessable_code(self) -> bool:
        """Return whether it was found by the code of its id, which is near those of other links."""
        return self.by_code and self.kind == "link" and decode_base62(self.name) is not None

    @property
    def text(self) -> str:
        """Return the name with its domain (`join_name`, `join_code`)."""
        return (join_code if self.is_kept else join_name)(self.host, self.name)

    @property
    def address(self) -> str:
        """Return the name as it is shown: `/name`, on another domain `host/name`."""
        return f"{self.host}/{self.name}"

    @property
    def is_cacheable(self) -> bool:
        """Return whether every visitor gets the same redirect. Others are never cached."""
        return self.kind == "link" and not (
            self.restricted or self.on_hold or self.flag_reason or self.click_limit
        )

    @property
    def may_be_kept(self) -> bool:
        """Return whether a browser may keep a redirect that its status allows it to keep."""
        return not (self.restricted or self.click_limit)

    @property
    def asks_for_button(self) -> bool:
        """Return whether visitors open it by a button: mail scanners and chats open links first."""
        return self.click_limit is not None and (
            self.click_limit < MIN_DIRECT_LIMIT or self.flag_reason is not None
        )

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
        return self._get_phase(now)

    def _get_phase(self, now: datetime) -> TargetState:
        if self.expires_at is not None and now >= self.expires_at:
            return "expired"
        if self.starts_at is not None and now < self.starts_at:
            return "scheduled"
        is_used_up = self.click_limit is not None and self.clicks_taken >= self.click_limit
        return "limit_reached" if is_used_up else "active"

    def get_substitute(self, state: TargetState) -> str | None:
        """Return where its owner sends visitors while it is in a state, or None."""
        substitutes: dict[TargetState, str | None] = {
            "scheduled": self.before_destination,
            "expired": self.expired_destination,
            "limit_reached": self.limit_destination,
        }
        return substitutes.get(state)


class LinkLookup(Protocol):
    """Lookup of names and codes."""

    has_kept_codes: bool
    """Whether there may be codes that imports have kept."""

    async def find(self, text: str) -> RedirectTarget | None:
        """Return the target of a name or a canonical code. Names come first.

        `text` is as `names.grammar.join_name` makes it.
        """

    async def can_open(self, found: RedirectTarget, visitor: SignedInUser) -> bool:
        """Return whether a signed-in visitor may open a restricted link."""

    async def read_rules(self, found: RedirectTarget) -> RedirectTarget:
        """Return a link with its rules, once the visitor may open it.

        A lookup leaves those of a link with a password unread, or its page would take longer with
        each rule.
        """

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
class CardOutcome:
    """The preview card of a link, for a crawler of a chat. It doesn't name the destination."""

    found: RedirectTarget


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
class PasswordOutcome:
    """A link that asks for a password, which the visitor has not given yet."""

    found: RedirectTarget


@dataclass(frozen=True, slots=True)
class LimitedOutcome:
    """A link with a click limit. `href` must not be told before a redirect is taken from it."""

    found: RedirectTarget
    href: str


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
    | CardOutcome
    | PreviewOutcome
    | ListOutcome
    | MissingOutcome
    | SignInOutcome
    | PasswordOutcome
    | LimitedOutcome
    | DeadOutcome
    | MismatchOutcome
)


def _is_locked(_found: RedirectTarget) -> bool:
    return False


def _is_no_crawler() -> bool:
    return False


def _choose_none(_found: RedirectTarget) -> TargetRule | None:
    return None


async def resolve(
    lookup: LinkLookup,
    request: ShortLinkRequest,
    get_user: Callable[[], Awaitable[SignedInUser | None]],
    now: Callable[[], datetime],
    is_unlocked: Callable[[RedirectTarget], bool] = _is_locked,
    choose: Callable[[RedirectTarget], TargetRule | None] = _choose_none,
    is_crawler: Callable[[], bool] = _is_no_crawler,
) -> ResolveOutcome:
    """Return the outcome of a request.

    `get_user` is called only if the outcome depends on it, `now` after all slow steps.
    `is_unlocked` tells whether the visitor has given the password of a link that asks for one,
    `choose` which of its rules decides about the visitor, `is_crawler` whether the visitor draws
    previews in chats.
    """
    found = await find_target(lookup, request)
    request = request if found is None else request.fit(found)
    if found is not None and found.kind == "list" and found.status != "deleted":
        return DeadOutcome(found, "on_hold") if found.on_hold else ListOutcome(found)
    if found is None or found.kind == "list" or request.view in (LinkView.FEED, LinkView.CARD):
        return MissingOutcome()
    if found.restricted and not found.asks_password:
        visitor = await get_user()
        if visitor is None or not await lookup.can_open(found, visitor):
            return SignInOutcome(found) if visitor is None else MissingOutcome()
    state, template = found.state_at(now()), found.template
    if state != "active" or template is None:
        return DeadOutcome(found, state)
    if found.asks_password and not is_unlocked(found):
        visitor = await get_user()
        if visitor is None or not await lookup.can_open(found, visitor):
            return PasswordOutcome(found)
    if found.unread_rules:
        found = await lookup.read_rules(found)
    chosen = choose(found) if found.rules else None
    if chosen is not None and chosen.template is not None:
        found, template = replace(found, chosen=chosen), chosen.template
    return _withhold(apply_path(found, template, request), is_crawler)


def _withhold(
    outcome: RedirectOutcome | PreviewOutcome | MismatchOutcome, is_crawler: Callable[[], bool]
) -> ResolveOutcome:
    """Return what comes instead of a redirect or a preview, if anything."""
    found, follows = outcome.found, isinstance(outcome, RedirectOutcome)
    if isinstance(outcome, MismatchOutcome):
        return outcome
    if found.click_limit is None and follows and found.flag_reason:
        return WarningOutcome(found, outcome.href)
    if follows and not found.flag_reason and found.preview_card and is_crawler():
        return CardOutcome(found)
    return outcome if found.click_limit is None else LimitedOutcome(found, outcome.href)


def is_found_by_guess(outcome: ResolveOutcome) -> bool:
    """Return whether an outcome reveals that the code of an id exists."""
    return (
        not isinstance(outcome, MissingOutcome | ListOutcome) and outcome.found.has_guessable_code
    )


async def find_target(lookup: LinkLookup, request: ShortLinkRequest) -> RedirectTarget | None:
    """Return the first target among the readings of a path, or None.

    Kept codes come first: the whole path, then its first segment.
    """
    if lookup.has_kept_codes:
        for text in list_kept_candidates(request.host, request.path, request.name):
            found = await lookup.find(text)
            if found is not None:
                return found
    for candidate in iter_candidates(request.name, request.host):
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
