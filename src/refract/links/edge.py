"""What every call about links shares: who asks, what a link looks like to them, what may go wrong."""

from typing import Annotated

from fastapi import Depends, Request

from refract.core.db import WriteSession
from refract.core.errors import RefractError, Unavailable
from refract.core.runtime import Runtime
from refract.identity.access import Right
from refract.identity.errors import BadCredentials, MissingScope, OriginUnproven, SignInNeeded
from refract.identity.models import User, UserRole
from refract.identity.visitors import Actor
from refract.limits.errors import RateLimited
from refract.limits.service import HOUR_SECONDS, SharedLimit, charge
from refract.links import service
from refract.links.access import Who
from refract.links.errors import LinkNotFound, NotYours
from refract.links.models import InvitedRole
from refract.links.queries import card_of, invitation_facts
from refract.links.schemas import InvitationMade, LinkCreate, LinkOut
from refract.links.service import Held, Wish
from refract.links.vetting import Vetted, vet
from refract.names.service import Namespace
from refract.web.problems import ValidationFailed, problems

ASKING = (SignInNeeded, BadCredentials, MissingScope, OriginUnproven, RateLimited, Unavailable, ValidationFailed)
GUARDED = problems(*ASKING)
ADDRESSES_PER_HOUR = 100
ON_A_LINK = problems(*ASKING, LinkNotFound, NotYours)


def _space(request: Request) -> Namespace:
    space: Namespace = request.app.state.space
    return space


Space = Annotated[Namespace, Depends(_space)]


def who(actor: Actor) -> Who:
    return Who(actor.user.id, actor.is_admin)


async def look_at(rt: Runtime, destination: str) -> Vetted:
    """A destination that may be led to, or the reason why not. Asks other services, so no transaction may be open."""
    (verdict,) = await vet(rt, [destination])
    if isinstance(verdict, RefractError):
        raise verdict
    return verdict


def wish_of(rt: Runtime, new: LinkCreate, vetted: Vetted) -> Wish:
    return Wish(new, vetted, str(new.visibility or rt.settings.default_visibility))


def creations_per_hour(rt: Runtime, user: User) -> int | None:
    """Return the limit of a person, or None: administrators are exempt."""
    return None if user.role == UserRole.ADMIN else rt.settings.creates_per_hour


class AddressLimit(SharedLimit):
    """Email addresses that a user may name in an hour: the responses tell who has an account."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(rt, "address", ADDRESSES_PER_HOUR, per="an hour for email addresses", seconds=HOUR_SECONDS)

    async def charge_actor(self, actor: Actor) -> None:
        """Count one address. Administrators see all accounts anyway, and are not charged."""
        if not actor.is_admin:
            await self.charge(str(actor.user.id))


def bucket_of(user: User) -> str:
    return f"creates:{user.id}"


async def create_one(session: WriteSession, rt: Runtime, space: Namespace, user: User, wish: Wish) -> service.Made:
    """Make a link and pay for it in the same transaction; finding one is free."""
    made = await service.create_link(session, space, user, wish)
    if not made.found:
        await charge(session, bucket_of(user), 1, per_hour=creations_per_hour(rt, user), now=rt.clock.now())
    return made


async def shown(rt: Runtime, held: Held) -> LinkOut:
    """The link as it is now, for whoever changed it. Called inside the transaction of the change."""
    card = await card_of(held.session, held.link)
    may = held.standing.may
    return card.shown(rt.settings.public_url, held.now, stats=may(Right.STATS), managing=may(Right.MANAGE))


async def offer(rt: Runtime, actor: Actor, link_id: int, email: str, role: InvitedRole) -> InvitationMade | LinkOut:
    """Invite somebody to own a link; where an administrator assigns it at once, return the link."""
    await rt.part(AddressLimit).charge_actor(actor)
    now = rt.clock.now()
    async with rt.db.write() as session:
        offered = await service.offer_link(session, who(actor), link_id, email, role, now)
        if isinstance(offered, Held):
            return await shown(rt, offered)
        facts = await invitation_facts(session, offered.id, now)
        return InvitationMade(invitation=facts.shown(rt.settings.public_url, managing=True))
