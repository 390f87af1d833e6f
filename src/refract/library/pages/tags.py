"""A user's own tags, and the rules that suggest them.

Tags have counts and colours. They are renamed in place, and merged by dragging or selecting.
"""

from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import and_
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.library import service
from refract.library.enrichment.rules import translate_invalid_rule
from refract.library.errors import InvalidRule
from refract.library.queries import items as queries_items
from refract.library.schemas import RuleIn
from refract.library.search.jobs import enqueue_reindex_change, enqueue_reindex_tag
from refract.library.service import tag_changes
from refract.tags import personal_tags
from refract.tags.models import Tag
from refract.tags.pages import (
    TagFormError,
    TagPageFilter,
    TagPageFilterQuery,
    load_tags,
    render_tags,
)
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, translate_error

router = page_router()
MY_TAGS_PATH = "/app/tags/mine"
_IDS = TypeAdapter(list[Id])


@router.get("/app/tags/mine")
async def my_tags_page(
    request: Request, actor: ReadCaller, rt: Rt, query: TagPageFilterQuery
) -> Response:
    return await _render_page(request, actor, rt, query)


@router.post("/app/tags/mine/merge")
async def merge_my_tags(
    actor: WriteCaller,
    rt: Rt,
    target: Annotated[str, Form(max_length=20)] = "",
    ids: Annotated[list[str] | None, Form(max_length=100)] = None,
) -> Response:
    """Merge the selected tags. Without a target, they are merged into the first of them."""
    response = RedirectResponse(MY_TAGS_PATH, 303)
    try:
        chosen = _IDS.validate_python(ids or [])
        into = _IDS.validate_python([target])[0] if target else chosen[0]
        async with rt.db.write() as session:
            changed = await tag_changes.merge_tags(
                session,
                rt.ids,
                actor.user.id,
                into,
                [tag_id for tag_id in chosen if tag_id != into],
                rt.clock.now(),
            )
            await enqueue_reindex_change(session, rt, actor.user.id, changed.change_id)
            message = gettext("Merged into “{tag}”", tag=changed.tag.name)
        flash.add(response, rt, message, undo=f"{MY_TAGS_PATH}/{into}/undo")
    except (ValidationError, IndexError):
        flash.add(response, rt, gettext("Select at least two tags."), kind="note")
    except (Conflict, Invalid, NotFound) as exc:
        flash.add(response, rt, translate_error(exc), kind="wrong")
    return response


@router.post("/app/tags/mine/{tag_id}")
async def change_my_tag(
    tag_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    name: Annotated[str, Form()] = "",
    color: Annotated[str, Form()] = "",
) -> Response:
    """Rename a tag or give it a colour."""
    try:
        async with rt.db.write() as session:
            tag = await personal_tags.change_tag(
                session, actor.user.id, tag_id, name=name or None, color=color or None
            )
            await enqueue_reindex_tag(session, rt, actor.user.id, tag.id)
            message = gettext("Saved changes to “{tag}”", tag=tag.name)
    except (Conflict, Invalid) as exc:
        return await _render_page(
            request,
            actor,
            rt,
            TagPageFilter(),
            status=exc.status,
            wrong=(str(tag_id), name, translate_error(exc)),
        )
    response = RedirectResponse(MY_TAGS_PATH, 303)
    flash.add(response, rt, message)
    return response


@router.post("/app/tags/mine/{tag_id}/delete")
async def delete_my_tag(tag_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Delete a tag and remove it from all items; undo restores both."""
    async with rt.db.write() as session:
        changed = await tag_changes.delete_tag(
            session, rt.ids, actor.user.id, tag_id, rt.clock.now()
        )
        await enqueue_reindex_change(session, rt, actor.user.id, changed.change_id)
        message = gettext("Deleted tag “{tag}”", tag=changed.tag.name)
    response = RedirectResponse(MY_TAGS_PATH, 303)
    flash.add(response, rt, message, undo=f"{MY_TAGS_PATH}/{tag_id}/undo")
    return response


@router.post("/app/tags/mine/{tag_id}/undo")
async def undo_my_tag(tag_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Undo the latest merge into this tag, or its deletion."""
    response = RedirectResponse(MY_TAGS_PATH, 303)
    try:
        async with rt.db.write() as session:
            changed = await tag_changes.undo_tag_change(
                session, actor.user.id, tag_id, rt.clock.now()
            )
            await enqueue_reindex_change(session, rt, actor.user.id, changed.change_id)
        flash.add(response, rt, gettext("Undone"))
    except Conflict as exc:
        flash.add(response, rt, translate_error(exc), kind="note")
    return response


async def _render_page(
    request: Request,
    actor: Caller,
    rt: Runtime,
    query: TagPageFilter,
    *,
    status: int = 200,
    wrong: TagFormError | None = None,
) -> Response:
    mine = and_(Tag.space == actor.user.id, Tag.deleted_at.is_(None))
    async with rt.db.read() as session:
        page = await load_tags(session, rt, mine, ["mine", actor.user.id], query)
        found = await personal_tags.list_aliases(session, [tag.id for tag in page.items])
    aliases = {str(tag_id): names for tag_id, names in found.items()}
    return render_tags(
        request,
        actor,
        MY_TAGS_PATH,
        page,
        query,
        status=status,
        scope="mine",
        aliases=aliases,
        may_change=True,
        wrong=wrong,
    )


# Pages of tag rules: `github.com → code`.

rules_router = page_router()
RULES_PATH = "/app/tags/rules"
_FIELD_MESSAGES = {
    "pattern": lazy_gettext('Enter a domain or a "keyword", up to 255 characters.'),
    "tags": lazy_gettext("Enter 1 to 10 tags."),
}


@rules_router.get("/app/tags/rules")
async def rules_page(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    return await _render_rules(request, actor, rt)


@rules_router.post("/app/tags/rules")
async def add_rule(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    pattern: Annotated[str, Form()] = "",
    tags: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    typed = {"pattern": pattern, "tags": tags}
    try:
        rule = RuleIn.model_validate(
            {"pattern": pattern, "tags": [name.strip() for name in tags.split(",") if name.strip()]}
        )
        async with rt.db.write() as session:
            await service.add_rule(session, rt, actor.user.id, rule)
    except ValidationError as exc:
        fields = {str(error["loc"][0]) for error in exc.errors()}
        errors = {name: str(words) for name, words in _FIELD_MESSAGES.items() if name in fields}
        return await _render_rules(request, actor, rt, status=422, values=typed, errors=errors)
    except InvalidRule as exc:
        errors = {"pattern": translate_invalid_rule(exc)}
        return await _render_rules(request, actor, rt, status=422, values=typed, errors=errors)
    except Invalid as exc:
        errors = {"tags": translate_error(exc)}
        return await _render_rules(request, actor, rt, status=422, values=typed, errors=errors)
    response = RedirectResponse(RULES_PATH, 303)
    flash.add(response, rt, gettext("Rule added"))
    return response


@rules_router.post("/app/tags/rules/{rule_id}/delete")
async def remove_rule(rule_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        await service.delete_rule(session, actor.user.id, rule_id)
    response = RedirectResponse(RULES_PATH, 303)
    flash.add(response, rt, gettext("Rule deleted. Existing tags stay."))
    return response


async def _render_rules(
    request: Request, actor: Caller, rt: Runtime, *, status: int = 200, **more: Any
) -> Response:
    async with rt.db.read() as session:
        rules = await queries_items.list_tag_rules(session, actor.user.id)
    return render_response(
        request,
        actor,
        "library/rules.html",
        status=status,
        page_title=gettext("Tags"),
        rules=rules,
        **more,
    )
