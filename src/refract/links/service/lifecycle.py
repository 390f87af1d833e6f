"""The states of a link: active ⇄ disabled, expired by time, and any → deleted."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, or_, select, update

from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.errors import ExpectedVersions
from refract.core.phrases import Phrase
from refract.links import feed
from refract.links.access import LinkCaller
from refract.links.enums import FlagReason, LinkState
from refract.links.errors import ChangedByAdmin, LinkNotFound, RenewalRequired
from refract.links.history import LinkChangeAction
from refract.links.limits.models import LinkLimit
from refract.links.models import (
    Link,
    LinkChange,
    LinkInvitation,
    LinkOwner,
    LinkShare,
    LinkTag,
    LinkTeam,
    LinkTombstone,
)
from refract.links.queries.cards import load_tag_names
from refract.links.service.copies import BATCH_SIZE, copy_primary_owners, copy_to_owners
from refract.links.service.create import reject_past_expiry
from refract.links.service.edit import clear_expired_mark
from refract.links.service.locked_link import LockedLink, lock_link
from refract.links.service.people import record_group_changes
from refract.links.service.team_rows import lock_owning_teams
from refract.names.enums import NameTarget
from refract.names.models import Name
from refract.names.queries import list_names
from refract.tags.service import adjust_usage


async def disable_link(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    now: datetime,
    *,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Disable an active link. Administrators may also lock one that its owner has disabled."""
    locked = await lock_link(session, caller, link_id, now, version=version)
    closing = (
        locked.state == LinkState.DISABLED
        and locked.access.as_admin
        and not locked.link.disabled_by_admin
    )
    if locked.state != LinkState.ACTIVE and not closing:
        raise locked.build_transition_error(Phrase("disabled"))
    locked.link.status = LinkState.DISABLED.value
    locked.link.disabled_by_admin = locked.access.as_admin
    await locked.record_version(LinkChangeAction.DISABLED)
    return locked


SYSTEM_CALLER = LinkCaller(0, is_admin=True)
"""Not a user. Safety checks act as an administrator, so that only one can undo it."""


async def disable_dangerous_link(
    session: WriteSession,
    link_id: int,
    href_digest: str,
    reason: FlagReason,
    threat: str | None,
    now: datetime,
) -> None:
    """Disable a link with a bad destination, with the reason.

    A link whose destination has changed since is left as it is.
    """
    try:
        locked = await lock_link(session, SYSTEM_CALLER, link_id, now)
    except LinkNotFound:
        return  # purged since
    link = locked.link
    if locked.state == LinkState.DELETED or link.href_digest != href_digest:
        return
    if locked.state == LinkState.DISABLED and link.flag_reason == reason:
        return  # already disabled for this reason
    before = locked.state
    link.flagged, link.flag_reason, link.checked_at = True, reason.value, now
    link.status, link.disabled_by_admin = LinkState.DISABLED.value, True
    why = f"{reason} ({threat})" if threat else str(reason)
    await locked.record_version(
        LinkChangeAction.DISABLED,
        {"status": {"from": before, "to": link.status}, "reason": {"from": None, "to": why}},
    )


async def enable_link(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    now: datetime,
    *,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Enable a disabled link, unless it has expired or an administrator has disabled it."""
    locked = await lock_link(session, caller, link_id, now, version=version)
    if locked.state != LinkState.DISABLED:
        raise locked.build_transition_error(Phrase("enabled"))
    if locked.link.disabled_by_admin and not caller.is_admin:
        raise ChangedByAdmin
    if locked.link.expires_at is not None and locked.link.expires_at <= now:
        raise RenewalRequired
    locked.link.status = LinkState.ACTIVE.value
    locked.link.disabled_by_admin = False
    await locked.record_version(LinkChangeAction.ENABLED)
    return locked


async def renew_link(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    now: datetime,
    expires_at: datetime | None = None,
    *,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Set or remove the expiry. A disabled link stays disabled."""
    locked = await lock_link(session, caller, link_id, now, version=version)
    locked.require_not_deleted(Phrase("renewed"))
    reject_past_expiry(expires_at, now)
    locked.link.expires_at = expires_at
    clear_expired_mark(locked.link)
    await locked.record_version(LinkChangeAction.RENEWED)
    return locked


async def delete_link(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    now: datetime,
    *,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Soft-delete a link: names, history and clicks stay. Idempotent."""
    locked = await lock_link(session, caller, link_id, now, version=version)
    if locked.state != LinkState.DELETED:
        mark_deleted(locked)
        await adjust_usage(session, dict.fromkeys(locked.tags, -1), now)
        await locked.record_version(LinkChangeAction.DELETED)
    return locked


def mark_deleted(locked: LockedLink) -> None:
    locked.link.status = LinkState.DELETED.value
    locked.link.deleted_at = locked.now


# Work of background jobs: mark expired links, and purge those that ended long ago.


async def mark_expired(session: WriteSession, now: datetime, limit: int = BATCH_SIZE) -> int:
    """Update the status of expired links. Nothing depends on it: states are computed from time."""
    due = (
        select(Link.id)
        .where(Link.status == LinkState.ACTIVE, Link.expires_at <= now)
        .order_by(Link.expires_at)
        .limit(limit)
    )
    ids = list(await session.scalars(due))
    if ids:
        still = update(Link).where(
            Link.id.in_(ids), Link.status == LinkState.ACTIVE, Link.expires_at <= now
        )
        await session.execute(
            still.values(status=LinkState.EXPIRED.value).execution_options(
                synchronize_session=False
            )
        )
        await copy_to_owners(session, ids)
    return len(ids)


async def purge_links(
    session: WriteSession, now: datetime, after: timedelta, limit: int = BATCH_SIZE
) -> int:
    """Delete links that expired or were deleted longer ago than `after`.

    A tombstone keeps each id, and clicks keep the id of their link. Disabled links stay even if
    they have expired, because their owners may still want them.
    """
    long_ago = now - after
    ended = or_(
        and_(Link.status.in_((LinkState.ACTIVE, LinkState.EXPIRED)), Link.expires_at <= long_ago),
        and_(Link.status == LinkState.DELETED, Link.deleted_at <= long_ago),
    )
    due = list(await session.scalars(select(Link.id).where(ended).order_by(Link.id).limit(limit)))
    return len(await purge_chosen_links(session, due, now, ended)) if due else 0


async def purge_chosen_links(
    session: WriteSession, due: Sequence[int], now: datetime, still: ColumnElement[bool]
) -> list[int]:
    """Delete those of these links for which `still` holds once they are locked; return their ids.

    Their names are free again, and a tombstone keeps each id.
    """
    # Who joins a team gets a row for each of its links, also for those that are about to go.
    locked_teams = await lock_owning_teams(session, due)
    found = select(Link.id, Link.version, Link.status, Link.random_code, Link.domain).where(
        Link.id.in_(due), still
    )
    rows = list(await session.execute(found.order_by(Link.id).with_for_update()))
    if rows:
        await lock_owning_teams(session, [row[0] for row in rows], locked=locked_teams)
        await _purge_rows(session, rows, now)
    return [row[0] for row in rows]


async def _purge_rows(
    session: WriteSession,
    rows: Sequence[tuple[int, int, str, str | None, str | None]],
    now: datetime,
) -> None:
    ids = [link_id for link_id, *_ in rows]
    names = await list_names(session, NameTarget.LINK, ids)
    tags = await load_tag_names(session, ids)
    uses: dict[int, int] = {}
    for link_id, _, status, _, _ in rows:
        for tag_id in (
            tags[link_id] if status != LinkState.DELETED else ()
        ):  # deleted links are not counted any more
            uses[tag_id] = uses.get(tag_id, 0) - 1
    await adjust_usage(session, uses, now)
    tombstones = [{"link_id": link_id, "purged_at": now} for link_id in ids]
    await insert_if_absent(session, LinkTombstone, tombstones)
    await session.execute(delete(Name).where(Name.kind == NameTarget.LINK, Name.target_id.in_(ids)))
    owners = select(LinkOwner.user_id).where(LinkOwner.link_id.in_(ids)).distinct()
    await record_group_changes(session, sorted(await session.scalars(owners)))
    children: tuple[Any, ...] = (
        LinkTag,
        LinkShare,
        LinkInvitation,
        LinkTeam,
        LinkOwner,
        LinkChange,
        LinkLimit,
    )
    for child in children:
        await session.execute(
            delete(child).where(child.link_id.in_(ids)).execution_options(synchronize_session=False)
        )
    await copy_primary_owners(session, ids)
    await session.execute(
        delete(Link).where(Link.id.in_(ids)).execution_options(synchronize_session=False)
    )
    await feed.publish_changes(
        session,
        [
            feed.build_change_of(link_id, version + 1, names[link_id], code, domain)
            for link_id, version, _, code, domain in rows
        ],
    )
