"""Links that are asked for: their destinations checked, and the links that would do as well."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.queries.cards import LinkCard, load_cards
from refract.links.queries.links import find_live_links
from refract.links.safety.service import CheckedDestination, check_destinations
from refract.links.schemas import LinkCreate
from refract.names.grammar import name_key
from refract.tags.grammar import slugify

_SAID = {
    "redirect_status": "redirect_status",
    "visibility": "effective_visibility",
    "forward_query": "forward_query",
    "expires_at": "expires_at",
}
"""Fields of a request that a link must have, and what they are called on the link."""


@dataclass(frozen=True, slots=True)
class KeptIdentity:
    """What an imported link keeps of its life elsewhere. It may have expired there: then it is expired here too."""

    number: int | None = None
    """Its id, and so its code. The caller has seen that no link has it and that no new link can get it."""
    disabled: bool = False
    code: str | None = None
    """The random code that it had there, and claims again."""


@dataclass(frozen=True, slots=True)
class NewLink:
    """A link that may be created: its destination has been checked. `check_links` makes them."""

    given: LinkCreate
    vetted: CheckedDestination
    visibility: str
    kept: KeptIdentity | None = None

    @property
    def href(self) -> str:
        return self.vetted.href


async def check_links(rt: Runtime, given: Sequence[LinkCreate]) -> list[NewLink | RefractError]:
    """Check destinations: each becomes a new link, or the reason why not.

    Other services may be asked, so no transaction may be open.
    """
    verdicts = await check_destinations(rt, [new.destination for new in given])
    return [_checked(rt, new, verdict) for new, verdict in zip(given, verdicts, strict=True)]


async def check_link(rt: Runtime, given: LinkCreate) -> NewLink:
    """Check one destination. Raises the reason why no link may lead there."""
    (checked,) = await check_links(rt, [given])
    if isinstance(checked, RefractError):
        raise checked
    return checked


def _checked(
    rt: Runtime, given: LinkCreate, verdict: CheckedDestination | RefractError
) -> NewLink | RefractError:
    if isinstance(verdict, RefractError):
        return verdict
    return NewLink(given, verdict, str(given.visibility or rt.settings.default_visibility))


def digest(href: str) -> str:
    """Return what an address is indexed by: the address itself may be too long for an index."""
    return hashlib.blake2b(href.encode(), digest_size=16).hexdigest()


async def find_existing(
    session: WriteSession, owner: User, news: Mapping[int, NewLink], now: datetime
) -> dict[int, LinkCard]:
    """Return the owner's oldest link that serves as well, for each new link with `find_if_exists` that has one.

    The owner's row is locked, so that two such calls at once cannot both find nothing.
    """
    looking = {index: new for index, new in news.items() if new.given.find_if_exists}
    if not looking:
        return {}
    await session.execute(
        select(User.id).where(User.id == owner.id).with_for_update(key_share=True)
    )
    links = await find_live_links(
        session, owner.id, {digest(new.href) for new in looking.values()}, now
    )
    cards = await load_cards(session, links)
    found = {
        index: next((card for card in cards if _serves(card, new)), None)
        for index, new in looking.items()
    }
    return {index: card for index, card in found.items() if card is not None}


def _serves(card: LinkCard, new: NewLink) -> bool:
    """Return whether a link has the same destination, every name and tag, and what is given expressly. Title and notes do not count."""
    said = [
        field
        for field in _SAID
        if field in new.given.model_fields_set and getattr(new.given, field) is not None
    ]
    return (
        card.link.href == new.href
        and {name_key(name) for name in new.given.names} <= {name_key(name) for name in card.names}
        and {slugify(tag) for tag in new.given.tags} <= {slugify(tag) for tag in card.tags}
        and all(getattr(card.link, _SAID[field]) == getattr(new.given, field) for field in said)
    )


def split_turns(news: Mapping[int, NewLink]) -> tuple[Sequence[int], Sequence[int]]:
    """Return which links can be created together, and which must wait because one before them may be what they look for."""
    now: list[int] = []
    later: list[int] = []
    seen: set[str] = set()
    for index, new in news.items():
        (later if new.given.find_if_exists and new.href in seen else now).append(index)
        seen.add(new.href)
    return now, later
