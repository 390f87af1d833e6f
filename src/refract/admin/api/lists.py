"""Admin API of all lists: find, delete, restore."""

from typing import Annotated

from fastapi import Query, Response

from refract.admin import queries
from refract.admin.schemas import AdminListPage
from refract.core.errors import NothingToUndo
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import AdminCaller
from refract.links.dependencies import Space
from refract.lists import service
from refract.lists.access import ListCaller
from refract.lists.dependencies import build_list_out
from refract.lists.draft_owners import ListClient
from refract.lists.errors import ListNotFound
from refract.lists.models import ListStatus
from refract.lists.queries import AllListsFilter
from refract.lists.schemas import ListOut
from refract.names.errors import SlugTaken
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems
from refract.web.routing import large_response

router = api_router("/admin/lists", "admin")


@router.get("")
async def list_all_lists(
    actor: AdminCaller,  # noqa: ARG001 - it guards
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    q: Annotated[
        str | None,
        Query(max_length=200, description="Words that occur in title, name or an entry's host."),
    ] = None,
    anonymous: Annotated[
        bool | None, Query(description="Only lists without an owner, or only those with one.")
    ] = None,
    status: Annotated[ListStatus | None, Query(description="Left out: both.")] = None,
    removed: Annotated[
        bool, Query(description="Those deleted in the last 24 hours, instead of live ones.")
    ] = False,
) -> AdminListPage:
    """List the lists of all users, newest first."""
    since = rt.clock.now() - service.UNDO_WINDOW if removed else None
    filters = AllListsFilter(q, anonymous, status, since)
    async with rt.db.read() as session:
        return await queries.load_admin_lists_page(
            session,
            CursorCodec(rt.secret),
            filters,
            rt.settings.public_url,
            limit=limit,
            cursor=cursor,
        )


@router.delete("/{list_id}", status_code=204, responses=problems(ListNotFound))
async def remove_list(list_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Delete a list: its page is gone immediately, and its owner can't restore it.

    Administrators can, for 24 hours.
    """
    async with rt.db.write() as session:
        await service.delete_list(
            session, rt.ids, ListCaller(actor.user.id, is_admin=True), list_id, rt.clock.now()
        )
    return Response(status_code=204)


@router.post("/{list_id}/undo", responses=problems(ListNotFound, NothingToUndo, SlugTaken))
@large_response
async def restore_list(list_id: Id, actor: AdminCaller, rt: Rt, space: Space) -> ListOut:
    """Restore a list that was deleted in the last 24 hours, by its owner or an administrator."""
    async with rt.db.write() as session:
        await service.undo_delete(session, space, ListCaller(actor.user.id, is_admin=True), list_id)
        return await build_list_out(session, rt, ListClient(actor, None, ""), list_id)
