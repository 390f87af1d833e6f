"""Personal data of the library: export and erasure."""

from collections.abc import AsyncIterator
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.library.search.jobs import enqueue_word_purge
from refract.library.service import erase_user_data, export_user_data


async def export_library_data(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Yield items, rules and usage, each with its kind of record."""
    async with rt.db.read() as session:
        async for kind, row in export_user_data(session, user.id):
            yield {"record": kind, **row}


async def erase_library_data(session: WriteSession, rt: Runtime, leaving: AccountDeletion) -> None:
    await erase_user_data(session, leaving.user.id)
    await enqueue_word_purge(session, rt)


PERSONAL_DATA = PersonalDataHook("library", export_library_data, erase_library_data)
