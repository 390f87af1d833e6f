"""Admin page of all lists."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from refract.admin import queries
from refract.core.errors import Conflict, NotFound
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.identity.dependencies import AdminCaller
from refract.identity.responses import render_response
from refract.links.dependencies import Space
from refract.lists import service
from refract.lists.access import ListCaller
from refract.lists.queries import AllListsFilter
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
PATH = "/app/admin/lists"


@router.get(PATH)
async def lists_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str, Query(max_length=200)] = "",
    show: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Show lists, newest first: all, those without an owner (`anonymous`), or just `removed`."""
    since = rt.clock.now() - service.UNDO_WINDOW if show == "removed" else None
    filters = AllListsFilter(q or None, True if show == "anonymous" else None, None, since)
    async with rt.db.read() as session:
        page = await queries.load_admin_lists_page(
            session,
            CursorCodec(rt.secret),
            filters,
            rt.settings.public_url,
            limit=PER_PAGE,
            cursor=cursor,
        )
    return render_response(
        request,
        actor,
        "admin/lists.html",
        page_title=gettext("Lists"),
        here="lists",
        lists=page.items,
        q=q,
        show=show,
        **build_pager(PATH, {"q": q, "show": show}, cursor, page.next_cursor),
    )


@router.post(PATH + "/{list_id}/remove")
async def remove_list(list_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Delete a list, and offer to undo that."""
    response = RedirectResponse(PATH, 303)
    try:
        async with rt.db.write() as session:
            found = await service.delete_list(
                session, rt.ids, ListCaller(actor.user.id, is_admin=True), list_id, rt.clock.now()
            )
            title = found.title or found.slug or gettext("Untitled list")
        flash.add(
            response,
            rt,
            gettext("Deleted “{title}”. You can restore it for 24 hours.", title=title),
            undo=f"{PATH}/{list_id}/undo",
        )
    except NotFound as exc:
        flash.add(response, rt, translate_error(exc), kind="note")
    return response


@router.post(PATH + "/{list_id}/undo")
async def restore_list(list_id: Id, actor: AdminCaller, rt: Rt, space: Space) -> Response:
    """Restore a list that was deleted in the last 24 hours."""
    response = RedirectResponse(PATH, 303)
    try:
        async with rt.db.write() as session:
            found = await service.undo_delete(
                session, space, ListCaller(actor.user.id, is_admin=True), list_id
            )
            title = found.title or found.slug or gettext("Untitled list")
        flash.add(response, rt, gettext("Restored “{title}”", title=title))
    except (Conflict, NotFound) as exc:
        flash.add(response, rt, translate_error(exc), kind="wrong")
    return response
