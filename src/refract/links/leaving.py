"""A person's links when they ask for everything, and when they go."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import delete, select, update

from refract.core.db import WriteSession
from refract.core.rows import slices
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.parts import Leaving, Part
from refract.links.exporting import pages_of_cards, record
from refract.links.models import Link, LinkChange, LinkOwner
from refract.links.service import digest, hand_over_links

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


PART = Part("links", export, erase)
