"""Making links, one or a thousand: the same few statements either way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table

from refract.core.db import WriteSession
from refract.core.errors import RefractError
from refract.core.ids import created_at
from refract.core.rows import as_read, insert_rows
from refract.identity.models import User
from refract.links import feed, history
from refract.links.errors import PastExpiry
from refract.links.models import Link, LinkOwner, LinkState, LinkTag, Visibility
from refract.links.payloads import check_later
from refract.links.queries.cards import Card, OwnerFacts
from refract.links.service.tagging import checked
from refract.links.service.wishes import Wish, digest, existing, in_turn
from refract.names import service as names
from refract.names.grammar import name_key
from refract.names.models import Kind
from refract.names.service import Namespace
from refract.tags import service as tags
from refract.tags.models import Tag


@dataclass(frozen=True, slots=True)
class Made:
    """The link, and whether it is new or was found."""

    card: Card
    found: bool = False


@dataclass(frozen=True, slots=True)
class _Draft:
    row: Mapping[str, Any]
    card: Card
    tags: Mapping[int, str]


async def create_link(session: WriteSession, space: Namespace, owner: User, wish: Wish) -> Made:
    """Give a destination an id, and the names that were asked for.

    The names table decides who gets a contested name; checking first would race.
    """
    result = (await create_links(session, space, owner, [wish]))[0]
    if isinstance(result, RefractError):
        raise result
    return result


async def create_links(session: WriteSession, space: Namespace, owner: User, wishes: Sequence[Wish]) -> list[Made | RefractError]:
    """Make many links; each wish has a result of its own, and one that fails takes nothing from the others."""
    now = space.clock.now()
    results: dict[int, Made | RefractError] = {}
    pending: dict[int, Wish] = {}
    tag_names: dict[int, list[str]] = {}
    for index, wish in enumerate(wishes):
        try:
            tag_names[index] = checked(wish.new.tags)
            if wish.kept is None:
                refuse_past(wish.new.expires_at, now)
            pending[index] = wish
        except RefractError as problem:
            results[index] = problem
    while pending:
        found = await existing(session, owner, pending, now)
        results |= {index: Made(card, found=True) for index, card in found.items()}
        together, later = in_turn({index: wish for index, wish in pending.items() if index not in found})
        results |= await _make(session, space, owner, {index: (pending[index], tag_names[index]) for index in together})
        pending = {index: pending[index] for index in later}
    return [results[index] for index in range(len(wishes))]


def refuse_past(expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise PastExpiry


async def _make(
    session: WriteSession, space: Namespace, owner: User, wishes: Mapping[int, tuple[Wish, list[str]]]
) -> dict[int, Made | RefractError]:
    now = space.clock.now()
    numbers = await _numbers(session, space, {index: wish for index, (wish, _) in wishes.items()})
    refused = await names.claim(session, space, Kind.LINK, {numbers[index]: wish.new.names for index, (wish, _) in wishes.items()})
    granted = {index: wished for index, wished in wishes.items() if numbers[index] not in refused}
    codes = await names.give_codes(session, space, _codes_wanted(space, numbers, granted))
    by_name = await tags.ensure_shared(session, space.ids, dict.fromkeys(name for _, wanted in granted.values() for name in wanted), now)
    drafts = {
        index: _draft(numbers[index], codes.get(numbers[index]), wish, owner, [by_name[name] for name in wanted])
        for index, (wish, wanted) in granted.items()
    }
    await _insert(session, owner.id, list(drafts.values()), now)
    await check_later(session, space, [numbers[index] for index, (wish, _) in granted.items() if wish.vetted.unchecked])
    made: dict[int, Made | RefractError] = {index: refused[number] for index, number in numbers.items() if number in refused}
    return made | {index: Made(draft.card) for index, draft in drafts.items()}


async def _numbers(session: WriteSession, space: Namespace, wishes: Mapping[int, Wish]) -> dict[int, int]:
    kept = {index: wish.kept.number for index, wish in wishes.items() if wish.kept is not None and wish.kept.number is not None}
    new = [index for index in wishes if index not in kept]
    return kept | dict(zip(new, await names.free_ids(session, space, len(new)), strict=True))


def _codes_wanted(space: Namespace, numbers: Mapping[int, int], wishes: Mapping[int, tuple[Wish, list[str]]]) -> dict[int, str | None]:
    """Return which links get a random code, and the one they had elsewhere. A kept id keeps the code made of it."""
    wanted: dict[int, str | None] = {}
    for index, (wish, _) in wishes.items():
        kept = wish.kept if wish.kept is not None and wish.kept.number is not None else None
        if kept.code is not None if kept is not None else space.random_codes:
            wanted[numbers[index]] = kept.code if kept is not None else None
    return wanted


def _draft(number: int, code: str | None, wish: Wish, owner: User, tags_of_link: Sequence[Tag]) -> _Draft:
    new, vetted, made = wish.new, wish.vetted, created_at(number)
    state = LinkState.DISABLED if wish.kept is not None and wish.kept.disabled else LinkState.ACTIVE
    visibility, audience = Visibility(wish.visibility).stored
    given: dict[str, str] = {}
    for name in new.names:
        given.setdefault(name_key(name), name)
    row = {
        "id": number, "destination": vetted.typed, "href": vetted.href, "href_digest": digest(vetted.href), "destination_host": vetted.host,
        "has_placeholders": vetted.template is not None, "title": new.title, "notes": new.notes, "redirect_status": new.redirect_status,
        "visibility": visibility, "audience": audience, "random_code": code, "forward_query": new.forward_query,
        "status": state.value, "disabled_by_admin": False,
        "flagged": vetted.flagged, "flag_reason": vetted.flag_reason, "checked_at": None if vetted.unchecked else made,
        "expires_at": new.expires_at, "created_at": made, "updated_at": made, "deleted_at": None, "version": 1,
    }  # fmt: skip
    link = as_read(Link, {**row, "on_hold": False})
    row["search_text"] = link.__dict__["search_text"] = history.searchable(link, list(given.values()))
    facts = OwnerFacts(owner.id, owner.shown_name, owner.email, primary=True, added_at=made)
    tagged = {tag.id: tag.name for tag in sorted(tags_of_link, key=lambda tag: tag.key)}
    return _Draft(row, Card(link, list(given.values()), list(tagged.values()), [facts]), tagged)


async def _insert(session: WriteSession, owner_id: int, drafts: Sequence[_Draft], now: datetime) -> None:
    """The rows of new links, table by table."""
    links = [draft.card.link for draft in drafts]
    tagged = [{"link_id": draft.card.link.id, "tag_id": tag_id} for draft in drafts for tag_id in draft.tags]
    await insert_rows(session, _table(Link), [draft.row for draft in drafts])
    await insert_rows(session, _table(LinkOwner), [_owner(link, owner_id) for link in links])
    await insert_rows(session, _table(LinkTag), tagged)
    await tags.count_use(session, Counter(row["tag_id"] for row in tagged), now)
    await feed.changed(session, [feed.change_of(draft.card.link, draft.card.names) for draft in drafts])


def _table(model: type[Any]) -> Table:
    return cast("Table", model.__table__)


def _owner(link: Link, owner_id: int) -> dict[str, Any]:
    return {"link_id": link.id, "user_id": owner_id, "primary_link_id": link.id, "added_by": owner_id, "created_at": link.created_at}
