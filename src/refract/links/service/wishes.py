"""What somebody asks for when they ask for a link, and the links that would do as well."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from refract.core.db import WriteSession
from refract.identity.models import User
from refract.links.queries.cards import Card, cards_of
from refract.links.queries.find import live_links_to
from refract.links.schemas import LinkCreate
from refract.links.vetting import Vetted
from refract.names.grammar import name_key
from refract.tags.grammar import slug

_SAID = {"redirect_status": "redirect_status", "visibility": "seen_as", "forward_query": "forward_query", "expires_at": "expires_at"}
"""Fields of a wish that a link must have, and what they are called on the link."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a link keeps of its life elsewhere. One that has expired there may come all the same: it is expired here too."""

    number: int | None = None
    """Its id, and so its code. The caller has seen that nobody has it and that no new link can get it."""
    disabled: bool = False
    code: str | None = None
    """The random code that it had there, wished for again."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A link that somebody asks for, its destination already looked at."""

    new: LinkCreate
    vetted: Vetted
    visibility: str
    kept: Kept | None = None


def digest(href: str) -> str:
    """What an address is indexed by: the address itself may be too long for an index."""
    return hashlib.blake2b(href.encode(), digest_size=16).hexdigest()


async def existing(session: WriteSession, owner: User, wishes: Mapping[int, Wish], now: datetime) -> dict[int, Card]:
    """For each wish that would rather have a link that is there: the owner's oldest one that fulfils it.

    The owner's row is locked, so two such wishes made at once cannot both find nothing.
    """
    looking = {index: wish for index, wish in wishes.items() if wish.new.find_if_exists}
    if not looking:
        return {}
    await session.execute(select(User.id).where(User.id == owner.id).with_for_update(key_share=True))
    links = await live_links_to(session, owner.id, {digest(wish.vetted.href) for wish in looking.values()}, now)
    cards = await cards_of(session, links)
    found = {index: next((card for card in cards if _fulfils(card, wish)), None) for index, wish in looking.items()}
    return {index: card for index, card in found.items() if card is not None}


def _fulfils(card: Card, wish: Wish) -> bool:
    """Same destination, every name and tag that is asked for, and what the wish says expressly. Title and notes are only words."""
    said = [field for field in _SAID if field in wish.new.model_fields_set and getattr(wish.new, field) is not None]
    return (
        card.link.href == wish.vetted.href
        and _all_in(map(name_key, wish.new.names), map(name_key, card.names))
        and _all_in(map(slug, wish.new.tags), map(slug, card.tags))
        and all(getattr(card.link, _SAID[field]) == getattr(wish.new, field) for field in said)
    )


def _all_in(some: "map[str]", others: "map[str]") -> bool:
    return set(some) <= set(others)


def in_turn(wishes: Mapping[int, Wish]) -> tuple[Sequence[int], Sequence[int]]:
    """Which wishes can be granted together, and which must wait, since one before them may make the link they look for."""
    now: list[int] = []
    later: list[int] = []
    seen: set[str] = set()
    for index, wish in wishes.items():
        (later if wish.new.find_if_exists and wish.vetted.href in seen else now).append(index)
        seen.add(wish.vetted.href)
    return now, later
