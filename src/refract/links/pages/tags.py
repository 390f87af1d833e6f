"""Shared tags: the vocabulary of links, with their counts. Administrators rename and colour them in place."""

from typing import Annotated

from fastapi import Form, Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Admin, Reader
from refract.identity.visitors import Actor
from refract.links import queries
from refract.links.dependencies import who
from refract.tags import service
from refract.tags.errors import TagNotFound
from refract.tags.models import TagScope
from refract.tags.pages import Asked, Refused, TagsAsked, read_tags, show_tags
from refract.tags.queries import tags_by_id
from refract.web import flash
from refract.web.toolkit import Rt, page_router

router = page_router()
HERE = "/app/tags"


@router.get("/app/tags")
async def tags_page(request: Request, actor: Reader, rt: Rt, asked: TagsAsked) -> Response:
    """Tags on links that I may see."""
    return await _page(request, actor, rt, asked)


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
            await service.change_shared(session, tag, by=actor.user.id, at=rt.clock.now(), name=name or None, color=color or None)
    except (Conflict, Invalid) as refused:
        return await _page(request, actor, rt, Asked(), status=refused.status, wrong=(str(tag_id), name, refused.message))
    response = RedirectResponse(HERE, 303)
    flash.say(response, rt, f"Saved {name}." if name else "Saved.")
    return response


async def _page(request: Request, actor: Actor, rt: Runtime, asked: Asked, *, status: int = 200, wrong: Refused | None = None) -> Response:
    async with rt.db.read() as session:
        page = await read_tags(session, rt, queries.visible_tags(who(actor)), [actor.user.id, actor.is_admin], asked)
    return show_tags(request, actor, HERE, page, asked, status=status, may_change=actor.is_admin, wrong=wrong)
