"""Standing orders for the assistant, in the browser: `github.com → code`."""

from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Invalid
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.library import service
from refract.library.errors import InvalidRule
from refract.library.queries import items as queries_items
from refract.library.schemas import RuleIn
from refract.web import flash
from refract.web.dependencies import Rt, page_router

router = page_router()
RULES_PATH = "/app/tags/rules"
_FIELD_MESSAGES = {
    "pattern": "Write a host, or words in quotes; 255 characters at most.",
    "tags": "Name at least one tag, and ten at most.",
}


@router.get("/app/tags/rules")
async def rules_page(request: Request, actor: ReadCaller, rt: Rt) -> Response:
    return await _render_page(request, actor, rt)


@router.post("/app/tags/rules")
async def add_rule(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    pattern: Annotated[str, Form()] = "",
    tags: Annotated[str, Form(max_length=2_000)] = "",
) -> Response:
    """One more rule."""
    typed = {"pattern": pattern, "tags": tags}
    try:
        wish = RuleIn.model_validate(
            {"pattern": pattern, "tags": [name.strip() for name in tags.split(",") if name.strip()]}
        )
        async with rt.db.write() as session:
            added = await service.add_rule(session, rt, actor.user.id, wish)
            said = f"{added.pattern} is proposed as {', '.join(added.tags)} from now on."
    except ValidationError as exc:
        named = {str(one["loc"][0]) for one in exc.errors()}
        errors = {name: words for name, words in _FIELD_MESSAGES.items() if name in named}
        return await _render_page(request, actor, rt, status=422, values=typed, errors=errors)
    except Invalid as exc:
        field = "pattern" if isinstance(exc, InvalidRule) else "tags"
        return await _render_page(
            request, actor, rt, status=422, values=typed, errors={field: exc.message}
        )
    response = RedirectResponse(RULES_PATH, 303)
    flash.add(response, rt, said)
    return response


@router.post("/app/tags/rules/{rule_id}/delete")
async def remove_rule(rule_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        await service.delete_rule(session, actor.user.id, rule_id)
    response = RedirectResponse(RULES_PATH, 303)
    flash.add(response, rt, "The rule is gone. What it tagged keeps its tags.")
    return response


async def _render_page(
    request: Request, actor: Caller, rt: Runtime, *, status: int = 200, **more: Any
) -> Response:
    async with rt.db.read() as session:
        rules = await queries_items.list_tag_rules(session, actor.user.id)
    return render_response(
        request, actor, "library/rules.html", status=status, page_title="Tags", rules=rules, **more
    )
