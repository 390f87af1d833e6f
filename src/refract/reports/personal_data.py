"""Erasure of reports when an account is deleted."""

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.links.models import LinkOwner
from refract.lists.models import LinkList
from refract.reports.service import delete_target_reports


async def erase_personal_data(
    session: WriteSession, _rt: Runtime, leaving: AccountDeletion
) -> None:
    """Delete reports of the user's lists, and of their links unless those get a new owner.

    Runs before the hooks that erase links and lists.
    """
    lists = list(
        await session.scalars(select(LinkList.id).where(LinkList.owner_id == leaving.user.id))
    )
    await delete_target_reports(session, lists)
    if leaving.heir is None:
        mine = select(LinkOwner.link_id).where(
            LinkOwner.user_id == leaving.user.id, LinkOwner.primary_link_id.is_not(None)
        )
        await delete_target_reports(session, list(await session.scalars(mine)))


PERSONAL_DATA_HOOK = PersonalDataHook("reports", None, erase_personal_data)
"""Nothing to export: reporters are not stored, and reports of others are not the user's data."""
