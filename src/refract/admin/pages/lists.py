"""The administrators' screen of everybody's lists."""

from typing import Annotated
from urllib.parse import urlencode

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
from refract.web.dependencies import CursorParam, Rt, page_router

router = page_router()
PER_PAGE = 25
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
    """Everybody's lists, newest first: all, those without an owner (`anonymous`), or those just `removed`."""
    since = rt.clock.now() - service.UNDO_WINDOW if show == "removed" else None
    asked = AllListsFilter(q or None, True if show == "anonymous" else None, None, since)
    async with rt.db.read() as session:
        page = await queries.load_admin_lists_page(
            session,
            CursorCodec(rt.secret),
            asked,
            rt.settings.public_url,
            limit=PER_PAGE,
            cursor=cursor,
        )
    kept = {name: value for name, value in (("q", q), ("show", show)) if value}
    return render_response(
        request,
        actor,
        "admin/lists.html",
        page_title="Lists",
        here="lists",
        lists=page.items,
        q=q,
        show=show,
        next_url=(
            f"{PATH}?{urlencode({**kept, 'cursor': page.next_cursor})}"
            if page.next_cursor
            else None
        ),
        first_url=f"{PATH}?{urlencode(kept)}".rstrip("?") if cursor else None,
    )


@router.post(PATH + "/{list_id}/remove")
async def remove_list(list_id: Id, actor: AdminCaller, rt: Rt) -> Response:
    """Take a list down, and offer to bring it back."""
    response = RedirectResponse(PATH, 303)
    try:
        async with rt.db.write() as session:
            found = await service.delete_list(
                session, rt.ids, ListCaller(actor.user.id, is_admin=True), list_id, rt.clock.now()
            )
            title = found.title or found.slug or "Untitled list"
        flash.add(
            response,
            rt,
            f"“{title}” is removed. You can undo this for 24 hours.",
            undo=f"{PATH}/{list_id}/undo",
        )
    except NotFound as exc:
        flash.add(response, rt, exc.message, kind="note")
    return response


@router.post(PATH + "/{list_id}/undo")
async def restore_list(list_id: Id, actor: AdminCaller, rt: Rt, space: Space) -> Response:
    """Bring a removed list back."""
    response = RedirectResponse(PATH, 303)
    try:
        async with rt.db.write() as session:
            found = await service.undo_delete(
                session, space, ListCaller(actor.user.id, is_admin=True), list_id
            )
            title = found.title or found.slug or "Untitled list"
        flash.add(response, rt, f"“{title}” is back.")
    except (Conflict, NotFound) as exc:
        flash.add(response, rt, exc.message, kind="wrong")
    return response
