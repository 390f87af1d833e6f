"""A person's links when they ask for everything, and when they go."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import delete, or_, select, update

from refract.core.db import WriteSession
from refract.core.rows import slices
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.parts import Leaving, Part
from refract.links.exporting import pages_of_cards, record
from refract.links.models import Link, LinkChange, LinkInvitation, LinkOwner
from refract.links.service import digest, erase_invitations, hand_over_links

ERASED = "https://erased.invalid/"
"""Where a link led whose only owner is gone. Its names and its id stay, so that nobody else can take over an address that is in print."""


async def export(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Links that are theirs, alone or with others."""
    now = rt.clock.now()
    async for cards in pages_of_cards(rt, user.id):
        for card in cards:
            yield record(card, now)


async def erase(session: WriteSession, rt: Runtime, leaving: Leaving) -> None:
    """Co-owned links pass on. Those of theirs alone pass to the heir, or are deleted and lose every word that the person wrote."""
    await erase_invitations(session, leaving.user.id)
    await hand_over_links(session, leaving.user, rt.clock.now(), heir=leaving.heir)
    alone = list(await session.scalars(select(LinkOwner.link_id).where(LinkOwner.user_id == leaving.user.id)))
    for some in slices(alone):
        blank = update(Link).where(Link.id.in_(some))
        await session.execute(
            blank.values(
                destination=ERASED,
                href=ERASED,
                href_digest=digest(ERASED),
                destination_host="erased.invalid",
                has_placeholders=False,
                title=None,
                notes=None,
                search_text="",
            ).execution_options(synchronize_session=False)
        )
        await session.execute(delete(LinkChange).where(LinkChange.link_id.in_(some)))


async def export_invitations(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """What they were offered and what they offered others, as far as it is open."""
    async with rt.db.read() as session:
        theirs = or_(LinkInvitation.invitee_id == user.id, LinkInvitation.inviter_id == user.id)
        found = list(await session.scalars(select(LinkInvitation).where(theirs).order_by(LinkInvitation.id)))
    for one in found:
        names = ("id", "link_id", "inviter_id", "invitee_id", "role", "created_at", "expires_at")
        yield {name: str(getattr(one, name)) if name.endswith("id") else getattr(one, name) for name in names}


async def erase_nothing(session: WriteSession, rt: Runtime, leaving: Leaving) -> None:
    """Invitations go with the links."""


PART = Part("links", export, erase)
INVITATIONS = Part("invitations", export_invitations, erase_nothing)
