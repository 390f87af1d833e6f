"""API routes of UTM templates."""

from fastapi import Response

from refract.core.schemas import Id
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.links.campaigns import queries, service
from refract.links.campaigns.errors import (
    TooManyUtmTemplates,
    UtmTemplateEmpty,
    UtmTemplateExists,
    UtmTemplateNotFound,
)
from refract.links.campaigns.schemas import (
    UtmTemplateCreate,
    UtmTemplateList,
    UtmTemplateOut,
    UtmTemplatePatch,
)
from refract.teams.errors import TeamNotFound
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

router = api_router("/utm-templates", "links")


@router.get("")
async def list_utm_templates(actor: ReadCaller, rt: Rt) -> UtmTemplateList:
    """List your UTM templates, then those of your teams."""
    async with rt.db.read() as session:
        found = await queries.list_templates(session, actor.user.id)
    return UtmTemplateList(items=[owned.to_schema() for owned in found])


@router.post(
    "",
    status_code=201,
    responses=problems(UtmTemplateEmpty, UtmTemplateExists, TooManyUtmTemplates, TeamNotFound),
)
async def create_utm_template(
    new: UtmTemplateCreate, actor: WriteCaller, rt: Rt, response: Response
) -> UtmTemplateOut:
    """Create a UTM template, for yourself or for one of your teams."""
    async with rt.db.write() as session:
        owned = await service.create_template(session, actor.user, new, rt.clock.now())
        out = owned.to_schema()
    response.headers["Location"] = f"/api/v1/utm-templates/{out.id}"
    return out


@router.get("/{template_id}", responses=problems(UtmTemplateNotFound))
async def read_utm_template(template_id: Id, actor: ReadCaller, rt: Rt) -> UtmTemplateOut:
    """Get a UTM template."""
    async with rt.db.read() as session:
        return (await queries.view_template(session, actor.user.id, template_id)).to_schema()


@router.patch(
    "/{template_id}",
    responses=problems(UtmTemplateNotFound, UtmTemplateEmpty, UtmTemplateExists),
)
async def change_utm_template(
    template_id: Id, changes: UtmTemplatePatch, actor: WriteCaller, rt: Rt
) -> UtmTemplateOut:
    """Change a UTM template. Links that were made with it stay as they are."""
    async with rt.db.write() as session:
        owned = await service.change_template(
            session, actor.user.id, template_id, changes, rt.clock.now()
        )
        return owned.to_schema()


@router.delete("/{template_id}", status_code=204, responses=problems(UtmTemplateNotFound))
async def delete_utm_template(template_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Delete a UTM template. Links that were made with it stay as they are."""
    async with rt.db.write() as session:
        await service.delete_template(session, actor.user.id, template_id, rt.clock.now())
    return Response(status_code=204)
