"""active ⇄ disabled · expired is a matter of time · any → deleted."""

from datetime import datetime

from refract.core.db import WriteSession
from refract.links.access import Who
from refract.links.errors import LinkNotFound, OnlyAdministrators, RenewalNeeded
from refract.links.history import Action
from refract.links.models import FlagReason, LinkState
from refract.links.service.create import refuse_past
from refract.links.service.edit import wake
from refract.links.service.hold import Held, hold
from refract.tags.service import count_use


async def disable_link(session: WriteSession, who: Who, link_id: int, now: datetime, *, version: int | None = None) -> Held:
    """Stop an active link. An administrator may also close what its owner has disabled already."""
    held = await hold(session, who, link_id, now, version=version)
    closing = held.state == LinkState.DISABLED and held.standing.as_admin and not held.link.disabled_by_admin
    if held.state != LinkState.ACTIVE and not closing:
        raise held.refuse("disabled")
    held.link.status = LinkState.DISABLED.value
    held.link.disabled_by_admin = held.standing.as_admin
    await held.record(Action.DISABLED)
    return held


OURSELVES = Who(0, is_admin=True)
"""No user: what a check finds out is done with an administrator's rights, so only one can take it back."""


async def stop_link(session: WriteSession, link_id: int, href_digest: str, reason: FlagReason, threat: str | None, now: datetime) -> None:
    """Disable a link whose destination was found bad, and say why. A destination that was changed since is left alone."""
    try:
        held = await hold(session, OURSELVES, link_id, now)
    except LinkNotFound:
        return  # purged since
    link = held.link
    if held.state == LinkState.DELETED or link.href_digest != href_digest:
        return
    if held.state == LinkState.DISABLED and link.flag_reason == reason:
        return  # stopped for it before
    before = held.state
    link.flagged, link.flag_reason, link.checked_at = True, reason.value, now
    link.status, link.disabled_by_admin = LinkState.DISABLED.value, True
    why = f"{reason} ({threat})" if threat else str(reason)
    await held.record(Action.DISABLED, {"status": {"from": before, "to": link.status}, "reason": {"from": None, "to": why}})


async def enable_link(session: WriteSession, who: Who, link_id: int, now: datetime, *, version: int | None = None) -> Held:
    """Let a disabled link redirect again, unless its expiry has passed or an administrator has closed it."""
    held = await hold(session, who, link_id, now, version=version)
    if held.state != LinkState.DISABLED:
        raise held.refuse("enabled")
    if held.link.disabled_by_admin and not who.is_admin:
        raise OnlyAdministrators
    if held.link.expires_at is not None and held.link.expires_at <= now:
        raise RenewalNeeded
    held.link.status = LinkState.ACTIVE.value
    held.link.disabled_by_admin = False
    await held.record(Action.ENABLED)
    return held


async def renew_link(
    session: WriteSession, who: Who, link_id: int, now: datetime, expires_at: datetime | None = None, *, version: int | None = None
) -> Held:
    """Give a link a new expiry, or none. A disabled one stays disabled."""
    held = await hold(session, who, link_id, now, version=version)
    held.demand_not_deleted("renewed")
    refuse_past(expires_at, now)
    held.link.expires_at = expires_at
    wake(held.link)
    await held.record(Action.RENEWED)
    return held


async def delete_link(session: WriteSession, who: Who, link_id: int, now: datetime, *, version: int | None = None) -> Held:
    """Delete softly: names, history and clicks stay. Deleting twice is deleting once."""
    held = await hold(session, who, link_id, now, version=version)
    if held.state != LinkState.DELETED:
        mark_deleted(held)
        await count_use(session, dict.fromkeys(held.tags, -1), now)
        await held.record(Action.DELETED)
    return held


def mark_deleted(held: Held) -> None:
    held.link.status = LinkState.DELETED.value
    held.link.deleted_at = held.now
