"""One's own tags: counts, colours, rename in place, merge by dragging or by ticking, undo."""

from typing import Annotated

from fastapi import Form, Request
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import and_
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Reader, Writer
from refract.identity.visitors import Actor
from refract.library import vocabulary
from refract.library.search_jobs import reindex_change, reindex_tag
from refract.tags import personal
from refract.tags.models import Tag
from refract.tags.pages import Asked, Refused, TagsAsked, read_tags, show_tags
from refract.web import flash
from refract.web.toolkit import Rt, page_router

router = page_router()
HERE = "/app/tags/mine"
_IDS = TypeAdapter(list[Id])


@router.get("/app/tags/mine")
async def my_tags_page(request: Request, actor: Reader, rt: Rt, asked: TagsAsked) -> Response:
    return await _page(request, actor, rt, asked)


@router.post("/app/tags/mine/merge")
async def merge(
    actor: Writer, rt: Rt, target: Annotated[str, Form(max_length=20)] = "", ids: Annotated[list[str] | None, Form(max_length=100)] = None
) -> Response:
    """Make the ticked tags one. Without a target the first of them stays."""
    response = RedirectResponse(HERE, 303)
    try:
        chosen = _IDS.validate_python(ids or [])
        into = _IDS.validate_python([target])[0] if target else chosen[0]
        async with rt.db.write() as session:
            changed = await vocabulary.merge_tags(
                session, rt.ids, actor.user.id, into, [one for one in chosen if one != into], rt.clock.now()
            )
            await reindex_change(session, rt, actor.user.id, changed.change_id)
            said = f"Merged into {changed.tag.name}."
        flash.say(response, rt, said, undo=f"{HERE}/{into}/undo")
    except (ValidationError, IndexError):
        flash.say(response, rt, "Tick the tags to merge, two or more.", kind="note")
    except (Conflict, Invalid, NotFound) as refused:
        flash.say(response, rt, refused.message, kind="wrong")
    return response


@router.post("/app/tags/mine/{tag_id}")
async def change_my_tag(
    tag_id: Id, request: Request, actor: Writer, rt: Rt, name: Annotated[str, Form()] = "", color: Annotated[str, Form()] = ""
) -> Response:
    """Rename a tag or give it a colour."""
    try:
        async with rt.db.write() as session:
            tag = await personal.change(session, actor.user.id, tag_id, name=name or None, color=color or None)
            await reindex_tag(session, rt, actor.user.id, tag.id)
            said = f"Saved {tag.name}."
    except (Conflict, Invalid) as refused:
        return await _page(request, actor, rt, Asked(), status=refused.status, wrong=(str(tag_id), name, refused.message))
    response = RedirectResponse(HERE, 303)
    flash.say(response, rt, said)
    return response


@router.post("/app/tags/mine/{tag_id}/delete")
async def delete_my_tag(tag_id: Id, actor: Writer, rt: Rt) -> Response:
    """Take a tag off everything; undo puts it back."""
    async with rt.db.write() as session:
        changed = await vocabulary.delete_tag(session, rt.ids, actor.user.id, tag_id, rt.clock.now())
        await reindex_change(session, rt, actor.user.id, changed.change_id)
        said = f"Deleted {changed.tag.name}."
    response = RedirectResponse(HERE, 303)
    flash.say(response, rt, said, undo=f"{HERE}/{tag_id}/undo")
    return response


@router.post("/app/tags/mine/{tag_id}/undo")
async def undo_my_tag(tag_id: Id, actor: Writer, rt: Rt) -> Response:
    """Take back the latest merge into this tag, or its deletion."""
    response = RedirectResponse(HERE, 303)
    try:
        async with rt.db.write() as session:
            changed = await vocabulary.undo_change(session, actor.user.id, tag_id, rt.clock.now())
            await reindex_change(session, rt, actor.user.id, changed.change_id)
        flash.say(response, rt, "As it was.")
    except Conflict as refused:
        flash.say(response, rt, refused.message, kind="note")
    return response


async def _page(request: Request, actor: Actor, rt: Runtime, asked: Asked, *, status: int = 200, wrong: Refused | None = None) -> Response:
    mine = and_(Tag.space == actor.user.id, Tag.deleted_at.is_(None))
    async with rt.db.read() as session:
        page = await read_tags(session, rt, mine, ["mine", actor.user.id], asked)
        found = await personal.aliases_of(session, [tag.id for tag in page.items])
    aliases = {str(tag_id): names for tag_id, names in found.items()}
    return show_tags(request, actor, HERE, page, asked, status=status, scope="mine", aliases=aliases, may_change=True, wrong=wrong)
