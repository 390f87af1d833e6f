"""The page of the caller's teams, and the form of a new one."""

from typing import Any, Literal

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.teams import queries, service
from refract.teams.dependencies import (
    can_create_teams,
    require_team_creation,
    to_team_caller,
)
from refract.teams.pages.common import PATH, ROLE_LABELS, HandleField, NameField
from refract.teams.schemas import TeamCreate
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()


@router.get(PATH)
async def teams_page(
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    show: Literal["mine", "all"] = "mine",
    cursor: CursorParam = None,
) -> Response:
    """List the caller's teams; for administrators also all of them."""
    return await _render_teams(request, actor, rt, show=show, cursor=cursor)


@router.post(PATH)
async def create_team(
    request: Request, actor: WriteCaller, rt: Rt, name: NameField = "", slug: HandleField = ""
) -> Response:
    """Create a team, and show it."""
    require_team_creation(rt, actor)
    values = {"name": name, "slug": slug}
    try:
        new = TeamCreate(name=name, slug=slug.strip() or None)
        async with rt.db.write() as session:
            view = await service.create_team(session, to_team_caller(actor), new, rt.clock.now())
            team_id, title = view.team.id, view.team.name
    except ValidationError:
        errors = {"name": gettext("Enter a name of 1 to 80 characters.")}
        return await _render_teams(request, actor, rt, status=422, values=values, errors=errors)
    except (Conflict, Invalid) as exc:
        errors = {"slug": translate_error(exc)}
        return await _render_teams(
            request, actor, rt, status=exc.status, values=values, errors=errors
        )
    response = RedirectResponse(f"{PATH}/{team_id}", 303)
    flash.add(response, rt, gettext("Created the team {name}", name=title))
    return response


async def _render_teams(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    show: Literal["mine", "all"] = "mine",
    cursor: str | None = None,
    status: int = 200,
    **context: Any,
) -> Response:
    everyone = show == "all" and actor.is_admin
    async with rt.db.read() as session:
        page = await queries.load_teams_page(
            session,
            CursorCodec(rt.secret),
            to_team_caller(actor),
            limit=PER_PAGE,
            cursor=cursor,
            everyone=everyone,
        )
    params = {"show": "all" if everyone else ""}
    return render_response(
        request,
        actor,
        "teams/index.html",
        status=status,
        page_title=gettext("Teams"),
        teams=[view.to_schema() for view in page.items],
        roles=ROLE_LABELS,
        may_create=can_create_teams(rt, actor),
        show="all" if everyone else "mine",
        sees_all=actor.is_admin,
        **build_pager(PATH, params, cursor, page.next_cursor),
        **context,
    )
