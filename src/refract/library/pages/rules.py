"""Pages of tag rules: `github.com → code`."""

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
from refract.library.enrichment.rules import translate_invalid_rule
from refract.library.errors import InvalidRule
from refract.library.queries import items as queries_items
from refract.library.schemas import RuleIn
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, translate_error

router = page_router()
RULES_PATH = "/app/tags/rules"
_FIELD_MESSAGES = {
    "pattern": lazy_gettext('Enter a domain or a "keyword", up to 255 characters.'),
    "tags": lazy_gettext("Enter 1 to 10 tags."),
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
        return await _render_page(request, actor, rt, status=422, values=typed, errors=errors)
    except InvalidRule as exc:
        errors = {"pattern": translate_invalid_rule(exc)}
        return await _render_page(request, actor, rt, status=422, values=typed, errors=errors)
    except Invalid as exc:
        errors = {"tags": translate_error(exc)}
        return await _render_page(request, actor, rt, status=422, values=typed, errors=errors)
    response = RedirectResponse(RULES_PATH, 303)
    flash.add(response, rt, gettext("Rule added"))
    return response


@router.post("/app/tags/rules/{rule_id}/delete")
async def remove_rule(rule_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        await service.delete_rule(session, actor.user.id, rule_id)
    response = RedirectResponse(RULES_PATH, 303)
    flash.add(response, rt, gettext("Rule deleted. Existing tags stay."))
    return response


async def _render_page(
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
