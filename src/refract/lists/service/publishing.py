"""From draft to page, once; and editions that follow each other under one name."""

import secrets
import string
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update

from refract.core.db import WriteSession
from refract.core.ids import IdSource
from refract.identity import audit
from refract.links import feed
from refract.lists import queries
from refract.lists.access import Who
from refract.lists.errors import NoEntries, NotPublished
from refract.lists.models import LinkList, ListAction, ListEntry, ListEvent, ListStatus
from refract.lists.service.drafts import hold, hold_draft, record_change, searchable
from refract.names import service as names
from refract.names.errors import SlugReserved, SlugTaken
from refract.names.grammar import name_key
from refract.names.models import Kind, Name
from refract.names.service import Namespace

_LETTERS = string.ascii_lowercase + string.digits
_SIZES = (8, 8, 8, 8, 8, 10, 10, 12, 16)
"""A made-up name that is taken is made up again, in the end a longer one."""

_COPIED = (
    "link_id", "url", "href", "host", "normalized_url", "normalized_digest", "title", "description", "image", "title_by_hand",
    "description_by_hand", "fetch_status", "flagged", "flag_reason", "checked_at", "dangerous",
    "position",
)  # fmt: skip


async def publish(session: WriteSession, space: Namespace, who: Who, list_id: int) -> LinkList:
    """Give the list its name and fix it for good. The names table decides a contest; whoever loses has changed nothing."""
    family = await lock_family(session, list_id)
    found = await hold_draft(session, who, list_id)
    if await session.scalar(select(ListEntry.id).where(ListEntry.list_id == list_id).limit(1)) is None:
        raise NoEntries
    now = space.clock.now()
    await _take_name(session, space, found, [one.id for one in family])
    found.edition = 1 + max((one.edition or 0 for one in family), default=0)
    found.status = ListStatus.PUBLISHED.value
    found.published_at = now
    record_change(session, who, found, "published", now)
    log_action(session, space.ids, found, ListEvent.PUBLISH, now)
    await session.flush()
    await feed.changed(session, [news_of(found)])
    return found


async def lock_family(session: WriteSession, list_id: int) -> list[LinkList]:
    """All editions of a list, locked before any of them alone and in one order: so two who publish come one after the other."""
    family_id = await session.scalar(select(LinkList.family_id).where(LinkList.id == list_id))
    rows = select(LinkList).where(LinkList.family_id == family_id).order_by(LinkList.id).with_for_update()
    return list(await session.scalars(rows.execution_options(populate_existing=True)))


async def _take_name(session: WriteSession, space: Namespace, found: LinkList, family: Sequence[int]) -> None:
    """The name of an earlier edition is taken over; any other is claimed like every name."""
    if found.slug is not None:
        moved = update(Name).where(Name.key == name_key(found.slug), Name.kind == Kind.LIST, Name.target_id.in_(family))
        if not (await session.execute(moved.values(target_id=found.id, held_until=None))).rowcount:  # type: ignore[attr-defined]  # an update has one
            await names.claim_for(session, space, Kind.LIST, found.id, [found.slug])
        return
    for size in _SIZES:
        slug = "".join(secrets.choice(_LETTERS) for _ in range(size))
        try:
            await names.claim_for(session, space, Kind.LIST, found.id, [slug])
        except (SlugTaken, SlugReserved):
            continue
        found.slug = slug
        return
    raise SlugTaken(name="")


async def new_edition(session: WriteSession, space: Namespace, who: Who, list_id: int) -> tuple[LinkList, bool]:
    """A draft that begins as a copy and takes over the name when it is published; whether it is new or was begun already."""
    await lock_family(session, list_id)
    found = await hold(session, who, list_id)
    if found.status != ListStatus.PUBLISHED:
        raise NotPublished
    if (begun := await queries.open_edition(session, found.family_id)) is not None:
        return begun, False
    now, number = space.clock.now(), space.ids.next_id()
    draft = LinkList(
        id=number,
        owner_id=found.owner_id,
        creator_hash=found.creator_hash,
        family_id=found.family_id,
        title=found.title,
        description=found.description,
        palette=found.palette,
        slug=found.slug,
        status=ListStatus.DRAFT.value,
        version=1,
        search_text="",
        created_at=now,
        updated_at=now,
    )
    searchable(draft)
    session.add(draft)
    await session.flush()
    entries = list(await session.scalars(select(ListEntry).where(ListEntry.list_id == found.id).order_by(ListEntry.position)))
    for copy_id, entry in zip(space.ids.next_ids(len(entries)), entries, strict=True):
        copied = {name: getattr(entry, name) for name in _COPIED}
        session.add(ListEntry(id=copy_id, list_id=number, created_at=now, updated_at=now, **copied))
    if who.as_admin(found):
        audit.record(session, "list.edition_begun", at=now, actor_id=who.user_id, target=found.id)
    await session.flush()
    return draft, True


def log_action(session: WriteSession, ids: IdSource, found: LinkList, event: ListEvent, now: datetime) -> None:
    session.add(ListAction(id=ids.next_id(), list_id=found.id, event=event.value, slug=found.slug, created_at=now))


def news_of(found: LinkList) -> feed.Change:
    return feed.Change(found.id, found.version, (name_key(found.slug),) if found.slug else ())
