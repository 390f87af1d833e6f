"""Export and erasure of a user's lists."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import delete, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.lists import queries, service
from refract.lists.models import LinkList, ListAction, ListEdit

_LIST_FIELDS = (
    "title",
    "description",
    "palette",
    "layout",
    "cover",
    "shows_author",
    "sections",
    "domain",
    "slug",
    "status",
    "edition",
    "created_at",
    "updated_at",
    "published_at",
    "deleted_at",
)
_ACTION_FIELDS = ("event", "slug", "created_at")
_ENTRY_FIELDS = ("url", "title", "description", "image", "position", "created_at")


async def export_personal_data(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Yield the user's lists with their entries and actions: drafts and deleted ones too."""
    async with rt.db.read() as session:
        mine = list(
            await session.scalars(
                select(LinkList.id).where(LinkList.owner_id == user.id).order_by(LinkList.id)
            )
        )
    for list_id in mine:
        async with rt.db.read() as session:
            found = await session.get(LinkList, list_id)
            rows = await queries.list_entries(session, list_id)
            actions = list(
                await session.scalars(
                    select(ListAction).where(ListAction.list_id == list_id).order_by(ListAction.id)
                )
            )
        if found is not None:
            entries = [{name: getattr(row.entry, name) for name in _ENTRY_FIELDS} for row in rows]
            yield {
                "id": str(found.id),
                **{name: getattr(found, name) for name in _LIST_FIELDS},
                "entries": entries,
                "actions": [
                    {name: getattr(action, name) for name in _ACTION_FIELDS} for action in actions
                ],
            }


async def erase_personal_data(session: WriteSession, rt: Runtime, leaving: AccountDeletion) -> None:
    """Hand over lists to the heir; without one, erase them and their names now.

    Deleted lists are erased in any case.
    """
    if leaving.has_heir:
        await service.hand_over_lists(session, leaving, rt.clock.now())
    edits = delete(ListEdit).where(ListEdit.user_id == leaving.user.id)
    await session.execute(edits.execution_options(synchronize_session=False))
    await service.erase_user_lists(session, rt.ids, leaving.user.id, rt.clock.now())
    left = list(
        await session.scalars(select(LinkList.id).where(LinkList.owner_id == leaving.user.id))
    )
    await service.clear_slugs(session, left)
    await service.erase_lists(session, left)


PERSONAL_DATA_HOOK = PersonalDataHook("lists", export_personal_data, erase_personal_data)
