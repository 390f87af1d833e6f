"""A person's library when they ask for everything, and when they go."""

from collections.abc import AsyncIterator
from typing import Any

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.parts import Leaving, Part
from refract.library.search_jobs import forget_words_later
from refract.library.service import erase_person, export_person


async def export(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Items, rules and what was used, each with the kind of record it is."""
    async with rt.db.read() as session:
        async for kind, row in export_person(session, user.id):
            yield {"record": kind, **row}


async def erase(session: WriteSession, rt: Runtime, leaving: Leaving) -> None:
    await erase_person(session, leaving.user.id)
    await forget_words_later(session, rt)


PART = Part("library", export, erase)
