"""Reports when a person leaves: those about what was theirs alone go with it."""

from sqlalchemy import select

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity.parts import Leaving, Part
from refract.links.models import LinkOwner
from refract.lists.models import LinkList
from refract.reports.service import forget_targets


async def erase(session: WriteSession, _rt: Runtime, leaving: Leaving) -> None:
    """Remove reports of the person's lists, and of their links unless somebody takes those over.

    Runs before the parts that erase links and lists.
    """
    lists = list(await session.scalars(select(LinkList.id).where(LinkList.owner_id == leaving.user.id)))
    await forget_targets(session, lists)
    if leaving.heir is None:
        mine = select(LinkOwner.link_id).where(LinkOwner.user_id == leaving.user.id, LinkOwner.primary_link_id.is_not(None))
        await forget_targets(session, list(await session.scalars(mine)))


PART = Part("reports", None, erase)
"""Nothing to export: who reported is not kept, and what others reported is theirs."""
