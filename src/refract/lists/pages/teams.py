"""The form for the owner on the page of a list."""

from typing import Annotated

from fastapi import Form, Request
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.schemas import Id
from refract.identity.dependencies import WriteCaller
from refract.lists import service
from refract.lists.draft_owners import WriteListClient
from refract.lists.pages.responses import redirect_to_list, rerender_list
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext

router = page_router()


@router.post("/app/lists/{list_id}/transfer")
async def transfer_list(
    list_id: Id,
    request: Request,
    _actor: WriteCaller,
    client: WriteListClient,
    rt: Rt,
    team: Annotated[str, Form(max_length=50)] = "",
) -> Response:
    """Make a team the owner of a list, or without one the caller."""
    try:
        async with rt.db.write() as session:
            found = await service.transfer_list(
                session, client.caller, list_id, team or None, rt.clock.now()
            )
            name = found.team_name
    except RefractError as exc:
        return await rerender_list(request, client, rt, list_id, exc, "team", {"team": team})
    response = redirect_to_list(list_id)
    message = gettext("Transferred to {name}", name=name) if name else gettext("The list is yours")
    flash.add(response, rt, message)
    return response
