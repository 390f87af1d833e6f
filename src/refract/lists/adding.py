"""Put an address into one of my drafts, from wherever it is met: a link, something in the library, another page."""

from typing import Annotated, Any

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import read_id
from refract.identity.actors import Writer
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.links.dependencies import Space
from refract.lists import queries
from refract.lists.access import Who
from refract.lists.creators import Visitor, Writing
from refract.lists.edge import add_one, look_at, start_list
from refract.lists.models import ListStatus
from refract.lists.schemas import ListCreate
from refract.lists.shown import summary
from refract.web import flash
from refract.web.toolkit import Rt, page_router

router = page_router()
MOST_DRAFTS = 50


@router.get("/app/lists/add")
async def choose_list(request: Request, actor: Writer, rt: Rt, url: Annotated[str, Query(max_length=10_000)] = "") -> Response:
    """Which of my drafts it should go into, or a new one."""
    return await _choice(request, actor, rt, url)


@router.post("/app/lists/add")
async def add_to_list(  # noqa: PLR0913, PLR0917 - each field of the form is one
    request: Request,
    actor: Writer,
    visitor: Writing,
    rt: Rt,
    space: Space,
    url: Annotated[str, Form(max_length=10_000)] = "",
    to: Annotated[str, Form(max_length=20)] = "",
    title: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Add it at the end of the chosen draft; without a choice a new one is started."""
    try:
        list_id = await _added(rt, space, visitor, url, to, title)
    except (Conflict, Invalid, NotFound) as refused:
        return await _choice(request, actor, rt, url, status=refused.status, problem=refused.message, chosen=to, title=title)
    response = RedirectResponse(f"/app/lists/{list_id}", 303)
    flash.say(response, rt, "Added to the list.")
    return response


async def _added(rt: Runtime, space: Space, visitor: Visitor, url: str, to: str, title: str) -> int:
    address = await look_at(rt, url.strip())
    async with rt.db.write() as session:
        list_id = read_id(to) if to.isdigit() else (await start_list(session, rt, space, visitor, ListCreate(title=title))).id
        await add_one(session, rt, space, visitor, list_id, address)
    return list_id


async def _choice(request: Request, actor: Actor, rt: Runtime, url: str, *, status: int = 200, **context: Any) -> Response:
    async with rt.db.read() as session:
        mine = Who(actor.user.id)
        page = await queries.page_of_lists(session, Cursors(rt.secret), mine, limit=MOST_DRAFTS, cursor=None, status=ListStatus.DRAFT)
    drafts = [summary(found, count, views, rt.settings.public_url) for found, count, views in page.items]
    return respond(request, actor, "lists/add.html", status=status, page_title="Add to a list", url=url, drafts=drafts, **context)
