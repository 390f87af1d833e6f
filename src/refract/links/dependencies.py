"""FastAPI dependencies of links, and helpers that API and pages share."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import Depends, Request

from refract.core.runtime import Runtime
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.limits.shared_limits import AddressLimit, MissLimit
from refract.links import service
from refract.links.access import LinkCaller
from refract.links.enums import InvitedRole
from refract.links.queries import load_card, load_invitation
from refract.links.schemas import InvitationCreated, LinkOut
from refract.links.service import LockedLink
from refract.names.service import Namespace, may_spell_code, namespace_of


async def _space(request: Request) -> Namespace:
    space: Namespace = request.app.state.space
    return space


Space = Annotated[Namespace, Depends(_space)]


async def charge_code_like_names(rt: Runtime, actor: Caller, names: Iterable[str]) -> None:
    """Count names that spell codes as misses. Administrators, who see every link, are exempt."""
    if actor.is_admin:
        return
    for name in names:
        if may_spell_code(namespace_of(rt), name):
            await rt.singleton(MissLimit).charge_user(actor.user.id)


def to_link_caller(actor: Caller) -> LinkCaller:
    """Return the caller of a request as the services of links know it."""
    return LinkCaller(actor.user.id, actor.is_admin)


async def load_link_out(rt: Runtime, locked: LockedLink) -> LinkOut:
    """Return the link as it is now, for the caller who changed it, inside their transaction."""
    card = await load_card(locked.session, locked.link)
    may = locked.access.allows
    return card.to_schema(
        rt.settings.public_url,
        locked.now,
        stats=may(AccessRight.STATS),
        managing=may(AccessRight.MANAGE),
    )


async def invite_or_assign_owner(
    rt: Runtime, actor: Caller, link_id: int, email: str, role: InvitedRole
) -> InvitationCreated | LinkOut:
    """Invite someone to own a link; return the link where an administrator assigned it directly."""
    await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
    now = rt.clock.now()
    async with rt.db.write() as session:
        offered = await service.invite_owner(
            session, to_link_caller(actor), link_id, email, role, now
        )
        if isinstance(offered, LockedLink):
            return await load_link_out(rt, offered)
        facts = await load_invitation(session, offered.id, now)
        return InvitationCreated(invitation=facts.to_schema(rt.settings.public_url, managing=True))
