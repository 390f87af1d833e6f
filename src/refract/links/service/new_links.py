"""New links with checked destinations, their domains, and existing links that are equivalent."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

from sqlalchemy import select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, parse_web_url
from refract.domains.hosts import to_other_host
from refract.domains.models import Domain
from refract.domains.queries import DomainCaller, lock_usable_domain
from refract.identity.models import User, UserRole
from refract.links.enums import Visibility
from refract.links.errors import PasswordRequired, PasswordUnused, UnlistedRequired
from refract.links.models import Link
from refract.links.queries.cards import LinkCard, OwnerTeam, load_cards
from refract.links.queries.links import find_live_links
from refract.links.safety.service import CheckedDestination, check_destinations
from refract.links.schemas import LinkCreate, RedirectStatus
from refract.links.service.checks import CheckedExtras, check_extras
from refract.names.grammar import join_code, join_name, name_key
from refract.tags.grammar import slugify

_COMPARED_FIELDS = {
    "redirect_status": "redirect_status",
    "visibility": "effective_visibility",
    "forward_query": "forward_query",
    "noindex": "noindex",
    "expires_at": "expires_at",
    "starts_at": "starts_at",
}
"""Fields of a request that an equivalent link must match, with their names on the link."""


@dataclass(frozen=True, slots=True)
class KeptIdentity:
    """What an imported link keeps from elsewhere.

    It may have expired there, and is then expired here.
    """

    number: int | None = None
    """Its id, and so its code. The caller has checked that it is unused and can't be assigned."""
    disabled: bool = False
    code: str | None = None
    """The random code that it had, to be claimed again."""
    codes: tuple[str, ...] = ()
    """Codes that it had in another system, to be kept letter for letter."""
    created_at: datetime | None = None
    """When it was created there. Without an id to keep, its id is drawn from this time."""
    clicks_left: int | None = None
    """What was left of its click limit; None for all of it."""


@dataclass(frozen=True, slots=True)
class NewLink:
    """A link to create, with a checked destination. See `check_links`."""

    given: LinkCreate
    vetted: CheckedDestination
    visibility: str
    kept: KeptIdentity | None = None
    domain: str | None = None
    """The host of the domain on which it is to live; None for the default domain."""
    extras: CheckedExtras = field(default_factory=CheckedExtras)

    @property
    def names(self) -> list[str]:
        """Return the requested names and kept codes on their domain, as texts."""
        codes = self.kept.codes if self.kept is not None else ()
        return [
            *(join_name(self.domain, name) for name in self.given.names),
            *(join_code(self.domain, code) for code in codes),
        ]

    @property
    def href(self) -> str:
        return self.vetted.href

    @property
    def taken_clicks(self) -> int:
        """Return how much of its click limit is taken already."""
        limit, left = self.given.click_limit, self.kept.clicks_left if self.kept else None
        return 0 if limit is None or left is None else max(0, limit - left)

    @property
    def is_unchecked(self) -> bool:
        """Return whether the safety check of one of its URLs failed and must be repeated."""
        return self.vetted.unchecked or self.extras.rules_unchecked


async def check_links(rt: Runtime, given: Sequence[LinkCreate]) -> list[NewLink | RefractError]:
    """Check destinations. Return a new link or the error for each.

    This may call other services, so no transaction may be open.
    """
    verdicts = await check_destinations(rt, [new.destination for new in given])
    return [
        await _check_rest(rt, new, verdict) for new, verdict in zip(given, verdicts, strict=True)
    ]


async def check_link(rt: Runtime, given: LinkCreate) -> NewLink:
    """Check one destination. Raises the error."""
    (checked,) = await check_links(rt, [given])
    if isinstance(checked, RefractError):
        raise checked
    return checked


async def _check_rest(
    rt: Runtime, given: LinkCreate, verdict: CheckedDestination | RefractError
) -> NewLink | RefractError:
    if isinstance(verdict, RefractError):
        return verdict
    try:
        visibility = _choose_visibility(rt, given)
        extras = await check_extras(rt, given)
    except RefractError as exc:
        return exc
    domain = to_other_host(rt.settings.public_url, given.domain)
    return NewLink(given, verdict, visibility, domain=domain, extras=extras)


def _choose_visibility(rt: Runtime, given: LinkCreate) -> str:
    """Return the visibility of a new link. A password decides it."""
    if given.password is None:
        if given.visibility == Visibility.PASSWORD:
            raise PasswordRequired
        visibility = Visibility(given.visibility or rt.settings.default_visibility)
        if given.click_limit is None or visibility != Visibility.PUBLIC:
            return visibility.value
        if given.visibility is not None:
            raise UnlistedRequired
        return Visibility.UNLISTED.value
    if given.visibility not in (None, Visibility.PASSWORD):
        raise PasswordUnused
    return Visibility.PASSWORD.value


def digest(href: str) -> str:
    """Return the digest by which a URL is indexed. The URL itself may be too long for an index."""
    return hashlib.blake2b(href.encode(), digest_size=16).hexdigest()


async def find_links_to(
    session: ReadSession, user_id: int, url: str | None, now: datetime
) -> list[Link]:
    """Return a user's live links to exactly this URL, oldest first."""
    try:
        href = parse_web_url(url or "").href
    except BadUrl:
        return []
    return await find_live_links(session, user_id, {digest(href)}, now)


async def find_existing(
    session: WriteSession, owner: User, new_links: Mapping[int, NewLink], now: datetime
) -> dict[int, LinkCard]:
    """Return the owner's oldest equivalent link of each new link with `find_if_exists`.

    The owner's row is locked, so that two concurrent calls cannot both find nothing.
    """
    searched = {index: new for index, new in new_links.items() if new.given.find_if_exists}
    if not searched:
        return {}
    await session.execute(
        select(User.id).where(User.id == owner.id).with_for_update(key_share=True)
    )
    links = await find_live_links(
        session, owner.id, {digest(new.href) for new in searched.values()}, now
    )
    cards = await load_cards(session, links)
    found = {
        index: next((card for card in cards if _serves(card, new)), None)
        for index, new in searched.items()
    }
    return {index: card for index, card in found.items() if card is not None}


def _serves(card: LinkCard, new: NewLink) -> bool:
    """Return whether a link has the same destination, all names and tags, and all given settings.

    Title and notes do not count. A link with a password, rules, a preview card, a style of its QR
    code, a click limit, or other URLs for before and after is always a new one.
    """
    compared = [
        field
        for field in _COMPARED_FIELDS
        if field in new.given.model_fields_set and getattr(new.given, field) is not None
    ]
    return (
        new.given.password is None
        and new.given.click_limit is None
        and card.link.click_limit is None
        and not any(new.extras.substitutes.values())
        and new.extras.rules is None
        and new.given.preview_card is None
        and new.given.qr_style is None
        and card.link.href == new.href
        and card.link.domain == new.domain
        and {name_key(name) for name in new.names} <= {name_key(name) for name in card.names}
        and (new.given.team is None or new.given.team in map(_get_primary_slug, card.teams))
        and {slugify(tag) for tag in new.given.tags} <= {slugify(tag) for tag in card.tags}
        and all(
            getattr(card.link, _COMPARED_FIELDS[field]) == getattr(new.given, field)
            for field in compared
        )
    )


def _get_primary_slug(team: OwnerTeam) -> str | None:
    return team.slug if team.primary else None


def split_turns(new_links: Mapping[int, NewLink]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the links to create together, and those to create later.

    The latter wait because an earlier one may be the link they look for.
    """
    now: list[int] = []
    later: list[int] = []
    seen: set[str] = set()
    for index, new in new_links.items():
        (later if new.given.find_if_exists and new.href in seen else now).append(index)
        seen.add(new.href)
    return now, later


async def place_links(
    session: WriteSession, owner: User, new_links: Sequence[NewLink]
) -> list[NewLink | RefractError]:
    """Return the links with what their domains decide, or the reason why one can't live there.

    The domains are locked against their deletion, in one order.
    """
    caller = DomainCaller(owner.id, owner.role == UserRole.ADMIN)
    found: dict[str, Domain | RefractError] = {}
    for host in sorted({new.domain for new in new_links if new.domain}):
        try:
            found[host] = await lock_usable_domain(session, caller, host)
        except RefractError as exc:
            found[host] = exc
    return [new if new.domain is None else _place_link(new, found[new.domain]) for new in new_links]


def _place_link(new: NewLink, domain: Domain | RefractError) -> NewLink | RefractError:
    if isinstance(domain, RefractError) or "redirect_status" in new.given.model_fields_set:
        return domain if isinstance(domain, RefractError) else new
    status = cast("RedirectStatus", domain.default_redirect_status)
    return replace(new, given=new.given.model_copy(update={"redirect_status": status}))
