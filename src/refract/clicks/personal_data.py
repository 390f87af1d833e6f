"""Erasure of a user's roll-ups. Clicks stay with their links."""

from refract.clicks.jobs import DropGroup
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.jobs.queue import enqueue
from refract.links.models import USER_LINKS


async def erase_personal_data(session: WriteSession, rt: Runtime, leaving: AccountDeletion) -> None:
    """Drop the sums over all links of a user."""
    await enqueue(session, rt, DropGroup(group_kind=USER_LINKS, group_id=leaving.user.id))


PERSONAL_DATA_HOOK = PersonalDataHook("clicks", None, erase_personal_data)
