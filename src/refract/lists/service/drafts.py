"""Drafts: created with or without an account, edited by their owner, claimed by a user."""

from datetime import datetime

from sqlalchemy import select, update

from refract.core.db.session import ReadSession, WriteSession
from refract.core.text import fold_for_search
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.lists.access import ListCaller
from refract.lists.errors import ListImmutable, SlugLocked
from refract.lists.models import LinkList, ListStatus
from refract.lists.queries import NOT_DELETED
from refract.lists.schemas import ListCreate, ListPatch
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.errors import SlugTaken
from refract.names.grammar import validate_name
from refract.names.service import Namespace


async def create_list(
    session: WriteSession, space: Namespace, caller: ListCaller, new: ListCreate
) -> LinkList:
    """Create an empty draft. It belongs to the user, or to the creator cookie."""
    now = space.clock.now()
    number = space.ids.next_id()
    found = LinkList(
        id=number,
        owner_id=caller.user_id,
        creator_hash=caller.creator if caller.user_id is None else None,
        family_id=number,
        **new.model_dump(),
        status=ListStatus.DRAFT.value,
        version=1,
        search_text="",
        created_at=now,
        updated_at=now,
    )
    update_search_text(found)
    session.add(found)
    await session.flush()
    return found


async def lock_list(
    session: WriteSession, caller: ListCaller, list_id: int, right: AccessRight = AccessRight.EDIT
) -> LinkList:
    """Lock a list and the order of its entries until the transaction ends.

    A signed-in caller whose cookie made the list becomes its owner.
    """
    locked = (
        select(LinkList)
        .where(LinkList.id == list_id, NOT_DELETED)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    found = caller.require(await session.scalar(locked), right)
    if caller.user_id is not None and found.owner_id is None and caller.is_owner_of(found):
        # Working on it while signed in claims it.
        found.owner_id, found.creator_hash = caller.user_id, None
    return found


async def get_draft(session: ReadSession, caller: ListCaller, list_id: int) -> LinkList:
    """Return a draft that the caller may edit, without locking it: to refuse a request early."""
    found = caller.require(
        await session.scalar(select(LinkList).where(LinkList.id == list_id, NOT_DELETED)),
        AccessRight.EDIT,
    )
    if found.status != ListStatus.DRAFT:
        raise ListImmutable
    return found


async def lock_draft(session: WriteSession, caller: ListCaller, list_id: int) -> LinkList:
    """Lock a list that must be a draft."""
    found = await lock_list(session, caller, list_id)
    if found.status != ListStatus.DRAFT:
        raise ListImmutable
    return found


async def edit_list(
    session: WriteSession, caller: ListCaller, list_id: int, changes: ListPatch, now: datetime
) -> LinkList:
    """Change title, description and looks, as far as they are given."""
    found = await lock_draft(session, caller, list_id)
    given = changes.model_dump(exclude_unset=True)
    if any(getattr(found, name) != value for name, value in given.items()):
        for name, value in given.items():
            setattr(found, name, value)
        record_change(session, caller, found, "edited", now)
    await session.flush()
    return found


async def set_draft_domain(
    session: WriteSession, caller: ListCaller, list_id: int, host: str | None, now: datetime
) -> None:
    """Set the domain of a draft, which the caller has locked. Editions stay where they are."""
    found = await lock_draft(session, caller, list_id)
    if found.family_id != found.id:
        raise SlugLocked(slug=found.slug)
    found.domain = host
    record_change(session, caller, found, "edited", now)
    await session.flush()


async def set_draft_slug(
    session: WriteSession, space: Namespace, caller: ListCaller, list_id: int, slug: str | None
) -> LinkList:
    """Set the requested name of a draft. It is not reserved: the first to publish gets it."""
    found = await lock_draft(session, caller, list_id)
    if found.family_id != found.id:
        raise SlugLocked(slug=found.slug)
    if slug is not None:
        host = found.domain
        validate_name(slug, NameTarget.LIST, space.reserved, host=host or "")
        kind = NameTarget.LIST
        if not (await names.check_availability(session, space, slug, kind, host)).available:
            raise SlugTaken(name=slug)
    if found.slug != slug:
        found.slug = slug
        record_change(session, caller, found, "edited", space.clock.now())
    await session.flush()
    return found


async def claim_lists(session: WriteSession, user_id: int, creator: str) -> list[int]:
    """Make a user the owner of all lists of a creator cookie, which then opens none of them."""
    waiting = (
        select(LinkList.id)
        .where(LinkList.creator_hash == creator, LinkList.owner_id.is_(None))
        .order_by(LinkList.id)
    )
    ids = list(await session.scalars(waiting.with_for_update()))
    if ids:
        mine = update(LinkList).where(LinkList.id.in_(ids), LinkList.owner_id.is_(None))
        await session.execute(
            mine.values(owner_id=user_id, creator_hash=None).execution_options(
                synchronize_session=False
            )
        )
    return ids


def record_change(
    session: WriteSession, caller: ListCaller, found: LinkList, action: str, now: datetime
) -> None:
    """Increase the version of a changed list; audit the change if an administrator made it.

    Pages, API and command line all pass through here.
    """
    found.version += 1
    found.updated_at = now
    update_search_text(found)
    if caller.as_admin(found):
        audit.add_entry(session, f"list.{action}", at=now, actor_id=caller.user_id, target=found.id)


def update_search_text(found: LinkList) -> None:
    found.search_text = fold_for_search(
        "\n".join(text for text in (found.title, found.slug, found.description) if text)
    )
