"""FastAPI dependencies of the calls about links, and what API and pages share."""

from typing import Annotated

from fastapi import Depends, Request

from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.identity.access import Right
from refract.identity.errors import BadCredentials, MissingScope, OriginUnproven, SignInNeeded
from refract.identity.visitors import Actor
from refract.limits.errors import RateLimited
from refract.links import service
from refract.links.access import Who
from refract.links.errors import LinkNotFound, NotYours
from refract.links.models import InvitedRole
from refract.links.queries import card_of, invitation_facts
from refract.links.schemas import InvitationMade, LinkOut
from refract.links.service import Held
from refract.names.service import Namespace
from refract.web.problems import ValidationFailed, problems

ASKING = (SignInNeeded, BadCredentials, MissingScope, OriginUnproven, RateLimited, Unavailable, ValidationFailed)
GUARDED = problems(*ASKING)
ON_A_LINK = problems(*ASKING, LinkNotFound, NotYours)


def _space(request: Request) -> Namespace:
    space: Namespace = request.app.state.space
    return space


Space = Annotated[Namespace, Depends(_space)]


def who(actor: Actor) -> Who:
    return Who(actor.user.id, actor.is_admin)


async def shown(rt: Runtime, held: Held) -> LinkOut:
    """The link as it is now, for whoever changed it. Called inside the transaction of the change."""
    card = await card_of(held.session, held.link)
    may = held.standing.may
    return card.shown(rt.settings.public_url, held.now, stats=may(Right.STATS), managing=may(Right.MANAGE))


async def offer(rt: Runtime, actor: Actor, link_id: int, email: str, role: InvitedRole) -> InvitationMade | LinkOut:
    """Invite somebody to own a link; where an administrator assigns it at once, return the link."""
    await rt.part(service.AddressLimit).charge_caller(who(actor))
    now = rt.clock.now()
    async with rt.db.write() as session:
        offered = await service.offer_link(session, who(actor), link_id, email, role, now)
        if isinstance(offered, Held):
            return await shown(rt, offered)
        facts = await invitation_facts(session, offered.id, now)
        return InvitationMade(invitation=facts.shown(rt.settings.public_url, managing=True))
