"""Publication of drafts, and editions that succeed each other under one name."""

import secrets
import string
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update

from refract.core.db.bulk import get_rowcount
from refract.core.db.session import WriteSession
from refract.core.ids import IdSource
from refract.identity import audit
from refract.links import feed
from refract.links.changes import TargetChange
from refract.lists import queries
from refract.lists.access import ListCaller
from refract.lists.errors import EmptyList, ListNotPublished
from refract.lists.models import LinkList, ListAction, ListEntry, ListEvent, ListStatus
from refract.lists.service.drafts import lock_draft, lock_list, record_change, update_search_text
from refract.lists.service.entries import COPIED_FIELDS
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.errors import SlugReserved, SlugTaken
from refract.names.grammar import join_name, name_key
from refract.names.models import Name
from refract.names.service import Namespace

COPIED_DETAILS = (
    "title",
    "description",
    "palette",
    "layout",
    "cover",
    "shows_author",
    "sections",
)
"""What a new edition takes along, besides the entries."""
_SLUG_LETTERS = string.ascii_lowercase + string.digits
_SLUG_LENGTHS = (8, 8, 8, 8, 8, 10, 10, 12, 16)
"""Lengths of generated names, one per attempt: later attempts are longer."""


async def publish_list(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int
) -> LinkList:
    """Give the list its name and make it immutable. The names table decides between rivals."""
    family = await lock_family(session, list_id)
    found = await lock_draft(session, caller, list_id)
    if (
        await session.scalar(select(ListEntry.id).where(ListEntry.list_id == list_id).limit(1))
        is None
    ):
        raise EmptyList
    now = space.clock.now()
    await _take_name(session, space, found, [sibling.id for sibling in family])
    found.edition = 1 + max((sibling.edition or 0 for sibling in family), default=0)
    found.status = ListStatus.PUBLISHED.value
    found.published_at = now
    await record_change(session, caller, found, "published", now)
    log_action(session, space.ids, found, ListEvent.PUBLISH, now)
    await session.flush()
    await feed.publish_changes(session, [build_change(found)])
    return found


async def lock_family(session: WriteSession, list_id: int) -> list[LinkList]:
    """Lock and return all editions of a list, in one order and before any single one.

    So concurrent publications of a list run one after the other.
    """
    family_id = await session.scalar(select(LinkList.family_id).where(LinkList.id == list_id))
    rows = (
        select(LinkList)
        .where(LinkList.family_id == family_id)
        .order_by(LinkList.id)
        .with_for_update()
    )
    return list(await session.scalars(rows.execution_options(populate_existing=True)))


async def _take_name(
    session: WriteSession, space: Namespace, found: LinkList, family: Sequence[int]
) -> None:
    """Take over the name from an earlier edition, or claim it; without one, generate it."""
    if found.slug is not None:
        moved = update(Name).where(
            Name.key == name_key(join_name(found.domain, found.slug)),
            Name.kind == NameTarget.LIST,
            Name.target_id.in_(family),
        )
        if not get_rowcount(
            await session.execute(moved.values(target_id=found.id, held_until=None))
        ):
            await names.claim_names_for(
                session, space, NameTarget.LIST, found.id, [found.slug], found.domain
            )
        return
    for size in _SLUG_LENGTHS:
        slug = "".join(secrets.choice(_SLUG_LETTERS) for _ in range(size))
        try:
            await names.claim_names_for(
                session, space, NameTarget.LIST, found.id, [slug], found.domain
            )
        except (SlugTaken, SlugReserved):
            continue
        found.slug = slug
        return
    raise SlugTaken(name="")


async def create_edition(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int
) -> tuple[LinkList, bool]:
    """Return the draft of the next edition, and whether it is new.

    It begins as a copy and takes over the name when it is published.
    """
    await lock_family(session, list_id)
    found = await lock_list(session, caller, list_id)
    if found.status != ListStatus.PUBLISHED:
        raise ListNotPublished
    if (existing := await queries.find_open_edition(session, found.family_id)) is not None:
        return existing, False
    now, number = space.clock.now(), space.ids.next_id()
    draft = LinkList(
        id=number,
        owner_id=found.owner_id,
        team_id=found.team_id,
        creator_hash=found.creator_hash,
        family_id=found.family_id,
        **{name: getattr(found, name) for name in COPIED_DETAILS},
        slug=found.slug,
        domain=found.domain,
        status=ListStatus.DRAFT.value,
        version=1,
        search_text="",
        created_at=now,
        updated_at=now,
    )
    update_search_text(draft)
    session.add(draft)
    await session.flush()
    await _copy_entries(session, space.ids, found.id, draft)
    if caller.as_admin(found):
        audit.add_entry(
            session, "list.edition_begun", at=now, actor_id=caller.user_id, target=found.id
        )
    await session.flush()
    return draft, True


async def _copy_entries(
    session: WriteSession, ids: IdSource, source_id: int, draft: LinkList
) -> None:
    query = select(ListEntry).where(ListEntry.list_id == source_id).order_by(ListEntry.position)
    entries = list(await session.scalars(query))
    times = {"created_at": draft.created_at, "updated_at": draft.created_at}
    for copy_id, entry in zip(ids.next_ids(len(entries)), entries, strict=True):
        copied = {name: getattr(entry, name) for name in COPIED_FIELDS}
        session.add(ListEntry(id=copy_id, list_id=draft.id, **times, **copied))


def log_action(
    session: WriteSession, ids: IdSource, found: LinkList, event: ListEvent, now: datetime
) -> None:
    session.add(
        ListAction(
            id=ids.next_id(), list_id=found.id, event=event.value, slug=found.slug, created_at=now
        )
    )


def build_change(found: LinkList) -> TargetChange:
    names = (join_name(found.domain, found.slug),) if found.slug else ()
    return TargetChange(found.id, found.version, names)
