"""FastAPI dependencies of teams."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Request

from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.teams.errors import TeamCreationForbidden
from refract.teams.hooks import TeamHook
from refract.teams.queries import TeamCaller


async def _get_team_hooks(request: Request) -> Sequence[TeamHook]:
    hooks: Sequence[TeamHook] = request.app.state.team_hooks
    return hooks


TeamHooks = Annotated[Sequence[TeamHook], Depends(_get_team_hooks)]
"""What other features do when teams change, as `refract.registry` lists it."""


def to_team_caller(actor: Caller) -> TeamCaller:
    """Return the caller of a request as the services of teams know it."""
    return TeamCaller(actor.user.id, actor.is_admin)


def can_create_teams(rt: Runtime, actor: Caller) -> bool:
    return actor.is_admin or rt.settings.team_creation == "everyone"


def require_team_creation(rt: Runtime, actor: Caller) -> None:
    if not can_create_teams(rt, actor):
        raise TeamCreationForbidden
