"""Forms for the API keys on the page of a team."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from refract.core.errors import Invalid
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.dependencies import AccountCaller
from refract.identity.models import Scope
from refract.identity.pages.settings import DEFAULT_KEY_LIFETIME, KEY_LIFETIMES
from refract.teams import keys
from refract.teams.dependencies import TeamHooks, to_team_caller
from refract.teams.pages.common import PATH
from refract.teams.pages.detail import render_team, run_and_respond
from refract.teams.schemas import TeamKeyCreate
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()


class TeamKeyForm(BaseModel):
    """The form of a new key."""

    key_name: str = ""
    access: str = "write"
    days: str = DEFAULT_KEY_LIFETIME

    def read_key(self, rt: Runtime) -> tuple[TeamKeyCreate | None, dict[str, str]]:
        """Return the key to create, or None and the errors by field."""
        if self.days not in dict(KEY_LIFETIMES):
            return None, {"days": gettext("Choose when the key expires.")}
        ends = None if self.days == "never" else rt.clock.now() + timedelta(days=int(self.days))
        scopes = [Scope.READ] if self.access == "read" else [Scope.READ, Scope.WRITE]
        given: dict[str, Any] = {"name": self.key_name, "scopes": scopes, "expires_at": ends}
        try:
            return TeamKeyCreate.model_validate(given), {}
        except ValidationError:
            return None, {"key_name": gettext("Enter a name of at most 100 characters.")}


@router.post(PATH + "/{team_id}/keys")
async def create_key(
    team_id: Id,
    request: Request,
    actor: AccountCaller,
    rt: Rt,
    hooks: TeamHooks,
    form: Annotated[TeamKeyForm, Form()],
) -> Response:
    """Create an API key of the team and show it, the only time."""
    new, errors = form.read_key(rt)
    status, created = 422, None
    if new is not None:
        try:
            async with rt.db.write() as session:
                row, clear = await keys.create_team_key(
                    session, rt, to_team_caller(actor), team_id, new, hooks, parent=actor.parent_key
                )
                status, created = 200, {"name": row.name, "key": clear}
        except Invalid as exc:
            status, errors = exc.status, {"key_name": translate_error(exc)}
    context = {"new_key": created} if created else {"values": form.model_dump(), "errors": errors}
    return await render_team(request, actor, rt, team_id, status=status, **context)


@router.post(PATH + "/{team_id}/keys/{key_id}/revoke")
async def revoke_key(
    team_id: Id, key_id: Id, request: Request, actor: AccountCaller, rt: Rt
) -> Response:
    """Revoke an API key of the team."""

    async def work() -> str:
        async with rt.db.write() as session:
            await keys.revoke_team_key(session, rt, to_team_caller(actor), team_id, key_id)
        return gettext("Revoked the key")

    return await run_and_respond(request, actor, rt, team_id, work(), "revoked_key", {})
