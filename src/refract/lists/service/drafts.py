"""Drafts: started by anybody, changed by their maker, claimed by a person."""

from datetime import datetime

from sqlalchemy import select, update

from refract.core.db import ReadSession, WriteSession
from refract.core.text import fold
from refract.identity import audit
from refract.identity.access import Right
from refract.lists.access import Who
from refract.lists.errors import ListImmutable, SlugSettled
from refract.lists.models import LinkList, ListStatus
from refract.lists.queries import ALIVE
from refract.lists.schemas import ListCreate, ListPatch
from refract.names import service as names
from refract.names.errors import SlugTaken
from refract.names.grammar import check
from refract.names.models import Kind
from refract.names.service import Namespace


async def create_list(session: WriteSession, space: Namespace, who: Who, new: ListCreate) -> LinkList:
    """Start an empty draft. A person's is theirs; a stranger's belongs to the cookie."""
    now = space.clock.now()
    number = space.ids.next_id()
    found = LinkList(
        id=number,
        owner_id=who.user_id,
        creator_hash=who.creator if who.user_id is None else None,
        family_id=number,
        title=new.title,
        description=new.description,
        palette=new.palette,
        status=ListStatus.DRAFT.value,
        version=1,
        search_text="",
        created_at=now,
        updated_at=now,
    )
    searchable(found)
    session.add(found)
    await session.flush()
    return found


async def hold(session: WriteSession, who: Who, list_id: int, right: Right = Right.EDIT) -> LinkList:
    """Take a list in hand: nobody else changes it, or the order of its entries, until the transaction ends."""
    locked = select(LinkList).where(LinkList.id == list_id, ALIVE).with_for_update().execution_options(populate_existing=True)
    found = who.demand(await session.scalar(locked), right)
    if who.user_id is not None and found.owner_id is None and who.made(found):
        found.owner_id, found.creator_hash = who.user_id, None  # working on it while signed in claims it
    return found


async def draft_of(session: ReadSession, who: Who, list_id: int) -> LinkList:
    """A draft that somebody may change, without taking it in hand: to refuse early what would be refused later."""
    found = who.demand(await session.scalar(select(LinkList).where(LinkList.id == list_id, ALIVE)), Right.EDIT)
    if found.status != ListStatus.DRAFT:
        raise ListImmutable
    return found


async def hold_draft(session: WriteSession, who: Who, list_id: int) -> LinkList:
    """The same, for what only a draft allows."""
    found = await hold(session, who, list_id)
    if found.status != ListStatus.DRAFT:
        raise ListImmutable
    return found


async def edit_list(session: WriteSession, who: Who, list_id: int, changes: ListPatch, now: datetime) -> LinkList:
    """Change title, description and colours, as far as they are named."""
    found = await hold_draft(session, who, list_id)
    given = changes.model_dump(exclude_unset=True)
    if any(getattr(found, name) != value for name, value in given.items()):
        for name, value in given.items():
            setattr(found, name, value)
        record_change(session, who, found, "edited", now)
    await session.flush()
    return found


async def wish_slug(session: WriteSession, space: Namespace, who: Who, list_id: int, slug: str | None) -> LinkList:
    """Note the name a draft shall have. Nobody is promised it: whoever publishes first gets it."""
    found = await hold_draft(session, who, list_id)
    if found.family_id != found.id:
        raise SlugSettled(slug=found.slug)
    if slug is not None:
        check(slug, Kind.LIST, space.reserved)
        if not (await names.availability(session, space, slug, Kind.LIST)).available:
            raise SlugTaken(name=slug)
    if found.slug != slug:
        found.slug = slug
        record_change(session, who, found, "edited", space.clock.now())
    await session.flush()
    return found


async def claim_lists(session: WriteSession, user_id: int, creator: str) -> list[int]:
    """Make everything that a creator cookie has made somebody's own; the cookie alone opens none of it afterwards."""
    waiting = select(LinkList.id).where(LinkList.creator_hash == creator, LinkList.owner_id.is_(None)).order_by(LinkList.id)
    ids = list(await session.scalars(waiting.with_for_update()))
    if ids:
        mine = update(LinkList).where(LinkList.id.in_(ids), LinkList.owner_id.is_(None))
        await session.execute(mine.values(owner_id=user_id, creator_hash=None).execution_options(synchronize_session=False))
    return ids


def record_change(session: WriteSession, who: Who, found: LinkList, action: str, now: datetime) -> None:
    """Make the next version of a list that a person has changed, and audit it if the list is somebody else's.

    This is below every door: pages, API and command line.
    """
    found.version += 1
    found.updated_at = now
    searchable(found)
    if who.as_admin(found):
        audit.record(session, f"list.{action}", at=now, actor_id=who.user_id, target=found.id)


def searchable(found: LinkList) -> None:
    found.search_text = fold("\n".join(text for text in (found.title, found.slug, found.description) if text))
