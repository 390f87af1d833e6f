"""Shared tags: the vocabulary of links, with their counts. Administrators rename and colour them in place."""

from typing import Annotated

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity import audit
from refract.identity.actors import Admin, Reader
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.links import queries
from refract.links.edge import who
from refract.tags import service
from refract.tags.errors import TagNotFound
from refract.tags.models import TagScope
from refract.tags.queries import TagSort, page_of_tags, tags_by_id
from refract.web import flash
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
PER_PAGE = 100
SORTS = [(TagSort.USAGE.value, "Most used"), (TagSort.NAME.value, "A to Z"), (TagSort.LAST_USED.value, "Used last")]


@router.get("/app/tags")
async def tags_page(
    request: Request,
    actor: Reader,
    rt: Rt,
    cursor: Cursor = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    sort: TagSort = TagSort.USAGE,
) -> Response:
    """Tags on links that I may see."""
    return await _page(request, actor, rt, cursor=cursor, q=q, sort=sort)


@router.post("/app/tags/{tag_id}")
async def change_tag(
    tag_id: Id, request: Request, actor: Admin, rt: Rt, name: Annotated[str, Form()] = "", color: Annotated[str, Form()] = ""
) -> Response:
    """Give a shared tag another name or colour."""
    try:
        async with rt.db.write() as session:
            tag = (await tags_by_id(session, [tag_id])).get(tag_id)
            if tag is None or tag.scope != TagScope.SHARED:
                raise TagNotFound
            await service.change_shared(session, tag, name=name or None, color=color or None)
            await audit.note(session, rt, "tag.changed", actor=actor.user, target=tag.key)
    except (Conflict, Invalid) as refused:
        return await _page(request, actor, rt, status=refused.status, wrong=(str(tag_id), name, refused.message))
    response = RedirectResponse("/app/tags", 303)
    flash.say(response, rt, f"Saved {name}." if name else "Saved.")
    return response


async def _page(  # noqa: PLR0913 - each part of the question is one
    request: Request,
    actor: Actor,
    rt: Runtime,
    *,
    status: int = 200,
    cursor: str | None = None,
    q: str | None = None,
    sort: TagSort = TagSort.USAGE,
    wrong: tuple[str, str, str] | None = None,
) -> Response:
    async with rt.db.read() as session:
        visible = queries.visible_tags(who(actor))
        asker = [actor.user.id, actor.is_admin]
        page = await page_of_tags(session, Cursors(rt.secret), visible, asker, q=q, sort=sort, limit=PER_PAGE, cursor=cursor)
    return respond(
        request,
        actor,
        "tags.html",
        status=status,
        page_title="Tags",
        tags=page.items,
        most=max((tag.usage_count for tag in page.items), default=0),
        q=q or "",
        sort=sort.value,
        sorts=SORTS,
        may_change=actor.is_admin,
        wrong=wrong,
        next_url=f"/app/tags?sort={sort.value}&cursor={page.next_cursor}" if page.next_cursor else None,
    )
