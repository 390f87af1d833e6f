"""Drafts: created with or without an account, edited by their owner, claimed by a user."""

from datetime import datetime

from sqlalchemy import select, update

from refract.core.db.session import ReadSession, WriteSession
from refract.core.errors import ExpectedVersions, VersionMismatch
from refract.core.text import fold_for_search
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.identity.models import User
from refract.lists.access import ListCaller
from refract.lists.errors import ListChanged, ListImmutable, SlugLocked
from refract.lists.models import LinkList, ListEdit, ListStatus
from refract.lists.queries import NOT_DELETED
from refract.lists.schemas import ListCreate, ListPatch
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.errors import SlugTaken
from refract.names.grammar import validate_name
from refract.names.service import Namespace
from refract.teams.models import Team


async def create_list(
    session: WriteSession,
    space: Namespace,
    caller: ListCaller,
    new: ListCreate,
    team: Team | None = None,
) -> LinkList:
    """Create an empty draft. It belongs to the locked team, the user, or the creator cookie."""
    now = space.clock.now()
    number = space.ids.next_id()
    found = LinkList(
        id=number,
        owner_id=caller.user_id if team is None else None,
        team_id=None if team is None else team.id,
        creator_hash=caller.creator if caller.user_id is None else None,
        family_id=number,
        **new.model_dump(exclude={"team"}),
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
    found = await caller.require(session, await session.scalar(locked), right)
    if caller.user_id is not None and found.is_anonymous and caller.is_owner_of(found):
        # Working on it while signed in claims it.
        found.owner_id, found.creator_hash = caller.user_id, None
    return found


async def get_draft(session: ReadSession, caller: ListCaller, list_id: int) -> LinkList:
    """Return a draft that the caller may edit, without locking it: to refuse a request early."""
    found = await caller.require(
        session,
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
    session: WriteSession,
    caller: ListCaller,
    list_id: int,
    changes: ListPatch,
    now: datetime,
    *,
    version: ExpectedVersions = None,
    seen: int | None = None,
) -> LinkList:
    """Change title, description and looks, as far as they are given.

    Raises `VersionMismatch` if the list has none of the versions, and `ListChanged` if another
    user has changed the same fields since the version `seen`.
    """
    found = await lock_draft(session, caller, list_id)
    if version is not None and found.version not in version:
        raise VersionMismatch
    if seen is not None and (other := await find_other_editor(session, caller, found, seen)):
        raise ListChanged(name=other)
    given = changes.model_dump(exclude_unset=True)
    if any(getattr(found, name) != value for name, value in given.items()):
        for name, value in given.items():
            setattr(found, name, value)
        await record_change(session, caller, found, "edited", now)
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
    await record_change(session, caller, found, "edited", now)
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
        await record_change(session, caller, found, "edited", space.clock.now())
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


async def find_other_editor(
    session: ReadSession, caller: ListCaller, found: LinkList, seen: int
) -> str | None:
    """Return the name of who has changed the details of a team's list since a version."""
    if found.team_id is None:
        return None
    query = select(User).join(ListEdit, ListEdit.user_id == User.id)
    later = query.where(
        ListEdit.list_id == found.id,
        ListEdit.action == "edited",
        ListEdit.version > seen,
        ListEdit.user_id != caller.user_id,
    )
    other = await session.scalar(later.order_by(ListEdit.version.desc()).limit(1))
    return None if other is None else other.public_name


async def record_change(
    session: WriteSession, caller: ListCaller, found: LinkList, action: str, now: datetime
) -> None:
    """Increase the version of a changed list, and remember who changed a list of a team.

    A change that an administrator made is audited.

    Pages, API and command line all pass through here.
    """
    found.version += 1
    found.updated_at = now
    update_search_text(found)
    if found.team_id is not None and caller.user_id is not None:
        key = {"list_id": found.id, "user_id": caller.user_id, "action": action}
        edit = await session.get(ListEdit, tuple(key.values())) or ListEdit(**key)
        edit.version, edit.edited_at = found.version, now
        session.add(edit)
    if caller.as_admin(found):
        audit.add_entry(session, f"list.{action}", at=now, actor_id=caller.user_id, target=found.id)


def update_search_text(found: LinkList) -> None:
    found.search_text = fold_for_search(
        "\n".join(text for text in (found.title, found.slug, found.description) if text)
    )
