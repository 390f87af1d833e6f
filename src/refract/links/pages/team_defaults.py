"""The form for the defaults of a team, on its page."""

from typing import Annotated

from fastapi import Form, Request
from starlette.responses import Response

from refract.core.schemas import Id
from refract.domains.hosts import to_other_host
from refract.identity.dependencies import WriteCaller
from refract.links import service
from refract.teams.dependencies import to_team_caller
from refract.teams.pages.detail import run_and_respond
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext

router = page_router()


@router.post("/app/teams/{team_id}/defaults")
async def set_team_defaults(
    team_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    domain: Annotated[str, Form(max_length=253)] = "",
    tags: Annotated[str, Form(max_length=1200)] = "",
) -> Response:
    """Set tags and domain of new links that a team owns."""

    async def work() -> str:
        host = to_other_host(rt.settings.public_url, domain)
        names = [tag.strip() for tag in tags.split(",") if tag.strip()]
        async with rt.db.write() as session:
            await service.set_team_defaults(
                session, to_team_caller(actor), team_id, host, names, rt.clock.now()
            )
        return gettext("Saved the team")

    values = {"domain": domain, "tags": tags}
    return await run_and_respond(request, actor, rt, team_id, work(), "defaults", values)
