"""Teams as owners of lists. All editions of a list have the same owner."""

from datetime import datetime

from sqlalchemy import delete, func, select, update

from refract.core.db.session import WriteSession
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.identity.personal_data import AccountDeletion
from refract.links import feed
from refract.lists.access import ListCaller
from refract.lists.models import LinkList, ListEdit, ListStatus
from refract.lists.queries import NOT_DELETED
from refract.lists.service.drafts import lock_list
from refract.lists.service.publication import build_change, lock_family
from refract.teams.errors import TeamOwnsLists
from refract.teams.hooks import TeamHook
from refract.teams.ownership import lock_heir
from refract.teams.queries import TeamCaller


async def transfer_list(
    session: WriteSession, caller: ListCaller, list_id: int, slug: str | None, now: datetime
) -> LinkList:
    """Make a team of the caller's the owner of a list, or with None the caller.

    For the owner of the list, and the managers of the team that owns it.
    """
    assert caller.user_id is not None  # noqa: S101 - a guard of the route
    team = None
    if slug is not None:
        team = await lock_heir(session, TeamCaller(caller.user_id, caller.is_admin), slug)
    family = await lock_family(session, list_id)
    found = await lock_list(session, caller, list_id, AccessRight.TRANSFER)
    for sibling in family:
        await give_list(session, sibling, caller.user_id, None if team is None else team.id, now)
    audit.add_entry(
        session,
        "list.transferred",
        at=now,
        actor_id=caller.user_id,
        target=list_id,
        detail=None if team is None else team.slug,
    )
    await session.flush()
    for sibling in family:
        await session.refresh(sibling, ["on_hold", "team_slug", "team_name"])
    published = [sibling for sibling in family if sibling.status == ListStatus.PUBLISHED]
    await feed.publish_changes(session, [build_change(sibling) for sibling in published])
    return found


async def hand_over_lists(session: WriteSession, leaving: AccountDeletion, now: datetime) -> None:
    """Give the lists of a deleted account to its heir: drafts and published ones."""
    mine = select(LinkList).where(LinkList.owner_id == leaving.user.id, NOT_DELETED)
    locked = mine.order_by(LinkList.id).with_for_update()
    lists = list(await session.scalars(locked.execution_options(populate_existing=True)))
    heir_id = leaving.heir.id if leaving.heir is not None else None
    for found in lists:
        await give_list(session, found, heir_id, leaving.heir_team, now)
    await session.flush()
    published = [found for found in lists if found.status == ListStatus.PUBLISHED]
    await feed.publish_changes(session, [build_change(found) for found in published])


async def give_list(
    session: WriteSession, found: LinkList, user_id: int | None, team_id: int | None, now: datetime
) -> None:
    """Set the owner of a locked list: the team if there is one, else the user."""
    if team_id is None:
        await session.execute(delete(ListEdit).where(ListEdit.list_id == found.id))
    found.team_id = team_id
    found.owner_id = user_id if team_id is None else None
    found.creator_hash = None
    found.version += 1
    found.updated_at = now


async def release_team(session: WriteSession, team_id: int) -> None:
    """Raise `TeamOwnsLists` if the team owns lists. Deleted ones stay without an owner."""
    owned = select(func.count()).where(LinkList.team_id == team_id, NOT_DELETED)
    if count := await session.scalar(owned):
        raise TeamOwnsLists(count=count)
    deleted = update(LinkList).where(LinkList.team_id == team_id).values(team_id=None)
    await session.execute(deleted.execution_options(synchronize_session=False))


async def _update_members(*_change: object) -> None:
    """Do nothing: the members of a team are looked up with their access to a list."""


TEAM_HOOK = TeamHook(_update_members, release_team)
