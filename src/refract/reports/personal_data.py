"""Reports when a person leaves: those about what was theirs alone go with it."""

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
    """Remove reports of the person's lists, and of their links unless somebody takes those over.

    Runs before the parts that erase links and lists.
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
"""Nothing to export: who reported is not kept, and what others reported is theirs."""
