"""A person's lists when they ask for everything, and when they go."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import select

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.parts import Leaving, Part
from refract.lists import queries, service
from refract.lists.models import LinkList

_OF_A_LIST = ("title", "description", "palette", "slug", "status", "edition", "created_at", "updated_at", "published_at")
_OF_AN_ENTRY = ("url", "title", "description", "image", "position", "created_at")


async def export(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Lists of theirs with their entries, drafts too."""
    async with rt.db.read() as session:
        mine = list(await session.scalars(select(LinkList.id).where(LinkList.owner_id == user.id, queries.ALIVE).order_by(LinkList.id)))
    for list_id in mine:
        async with rt.db.read() as session:
            found = await session.get(LinkList, list_id)
            rows = await queries.entries_of(session, list_id)
        if found is not None:
            entries = [{name: getattr(row.entry, name) for name in _OF_AN_ENTRY} for row in rows]
            yield {"id": str(found.id), **{name: getattr(found, name) for name in _OF_A_LIST}, "entries": entries}


async def erase(session: WriteSession, rt: Runtime, leaving: Leaving) -> None:
    """Published lists are deleted; then everything goes at once, names too, not after the usual 90 days."""
    await service.erase_person(session, rt.ids, leaving.user.id, rt.clock.now())
    left = list(await session.scalars(select(LinkList.id).where(LinkList.owner_id == leaving.user.id)))
    await service.forget_slugs(session, left)
    await service.erase_lists(session, left)


PART = Part("lists", export, erase)
