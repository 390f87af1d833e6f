"""The page of UTM templates: create, edit and delete them."""

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.links.campaigns import queries, service
from refract.links.campaigns.parameters import UTM_KEYS
from refract.links.campaigns.queries import OwnedTemplate
from refract.links.campaigns.schemas import UtmTemplateCreate, UtmTemplatePatch
from refract.links.pages.forms import CAMPAIGN_FIELDS, read_values
from refract.teams.queries import list_own_teams
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error
from refract.web.problems import list_field_errors

router = page_router()
PATH = "/app/utm-templates"
_FIELD_BY_CODE = {"UTM_TEMPLATE_EMPTY": "utm_source", "TEAM_NOT_FOUND": "team"}


@router.get(PATH)
async def utm_templates_page(
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    edit: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """List the UTM templates that the caller may use, with the form of a new one or of one."""
    return await _render_templates(request, actor, rt, edit=edit)


@router.post(PATH)
async def create_utm_template(request: Request, actor: WriteCaller, rt: Rt) -> Response:
    values = read_values(await request.form())

    async def work() -> OwnedTemplate:
        given = {key: values[key] for key in ("name", *UTM_KEYS) if key in values}
        new = UtmTemplateCreate.model_validate(given | {"team": values.get("team") or None})
        async with rt.db.write() as session:
            return await service.create_template(session, actor.user, new, rt.clock.now())

    try:
        name = (await work()).template.name
    except (ValidationError, Conflict, Invalid, NotFound) as exc:
        return await _render_refused(request, actor, rt, exc, values)
    return _redirect(rt, gettext("Created the template {name}", name=name))


@router.post(PATH + "/{template_id}")
async def change_utm_template(
    template_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    """Change a template. A parameter that is blank is no longer set by it."""
    values = read_values(await request.form())
    given = {key: values[key] for key in ("name", *UTM_KEYS) if key in values}
    async with rt.db.read() as session:
        await queries.view_template(session, actor.user.id, template_id)
    try:
        changes = UtmTemplatePatch.model_validate(given)
        async with rt.db.write() as session:
            owned = await service.change_template(
                session, actor.user.id, template_id, changes, rt.clock.now()
            )
            name = owned.template.name
    except (ValidationError, Conflict, Invalid) as exc:
        return await _render_refused(request, actor, rt, exc, values, edit=str(template_id))
    return _redirect(rt, gettext("Saved the template {name}", name=name))


@router.post(PATH + "/{template_id}/delete")
async def delete_utm_template(template_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        owned = await service.delete_template(session, actor.user.id, template_id, rt.clock.now())
        name = owned.template.name
    return _redirect(rt, gettext("Deleted the template {name}", name=name))


def _redirect(rt: Runtime, message: str) -> Response:
    response = RedirectResponse(PATH, 303)
    flash.add(response, rt, message)
    return response


async def _render_refused(
    request: Request,
    actor: Caller,
    rt: Runtime,
    problem: ValidationError | Conflict | Invalid | NotFound,
    values: dict[str, str],
    *,
    edit: str = "",
) -> Response:
    if isinstance(problem, ValidationError):
        found = list_field_errors(problem.errors())
        errors = {error.field: error.message for error in reversed(found)}
        status = 422
    else:
        errors = {_FIELD_BY_CODE.get(problem.code, "name"): translate_error(problem)}
        status = problem.status
    return await _render_templates(
        request, actor, rt, status=status, edit=edit, values=values, errors=errors
    )


async def _render_templates(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    status: int = 200,
    edit: str = "",
    values: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> Response:
    async with rt.db.read() as session:
        found = await queries.list_templates(session, actor.user.id)
        teams = await list_own_teams(session, actor.user.id)
    names = {team.slug: team.name for team in teams}
    edited = next((owned for owned in found if str(owned.template.id) == edit), None)
    shown: dict[str, Any] = edited.values | {"name": edited.template.name} if edited else {}
    return render_response(
        request,
        actor,
        "links/utm_templates.html",
        status=status,
        page_title=gettext("UTM templates"),
        templates=[owned.to_schema() for owned in found],
        team_names=names,
        owners=[("", gettext("You")), *names.items()],
        campaign_fields=CAMPAIGN_FIELDS,
        edited=edited.to_schema() if edited else None,
        values=shown | (values or {}),
        errors=errors or {},
    )
