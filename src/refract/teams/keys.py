"""API keys of teams. They belong to the account of the team (`teams.accounts`)."""

from collections.abc import Sequence

from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.identity import audit, keys
from refract.identity.errors import KeyNotFound
from refract.identity.keys import ParentKey
from refract.identity.models import ApiKey
from refract.teams.accounts import add_account, find_account
from refract.teams.hooks import TeamHook
from refract.teams.queries import TeamCaller, view_team
from refract.teams.schemas import TeamKeyCreate
from refract.teams.service import lock_team


async def list_team_keys(
    session: ReadSession, caller: TeamCaller, team_id: int, *, include_revoked: bool = False
) -> list[ApiKey]:
    """Return the keys of a team, newest first. Raises `NotTeamManager`."""
    view = await view_team(session, caller, team_id)
    view.require_manager()
    account = await find_account(session, team_id)
    if account is None:
        return []
    return await keys.list_keys(session, account, include_revoked=include_revoked)


async def create_team_key(
    session: WriteSession,
    rt: Runtime,
    caller: TeamCaller,
    team_id: int,
    new: TeamKeyCreate,
    hooks: Sequence[TeamHook],
    *,
    parent: ParentKey | None = None,
) -> tuple[ApiKey, str]:
    """Create a key of a team; return its row and the key itself. Raises `NotTeamManager`."""
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    account = await find_account(session, team_id) or await add_account(
        session, rt, view.team, hooks
    )
    row, clear = await keys.create_key(
        session, rt, account, new.name, list(new.scopes), expires_at=new.expires_at, parent=parent
    )
    _audit(session, rt, "team.key_created", caller, team_id, row)
    return row, clear


async def revoke_team_key(
    session: WriteSession, rt: Runtime, caller: TeamCaller, team_id: int, key_id: int
) -> None:
    """Revoke a key of a team. Raises `KeyNotFound`."""
    view = await lock_team(session, caller, team_id)
    view.require_manager()
    account = await find_account(session, team_id)
    if account is None:
        raise KeyNotFound
    for row in await keys.revoke_key(session, account, key_id):
        _audit(session, rt, "team.key_revoked", caller, team_id, row)
    await audit.update_revocation_log(session, rt)


def _audit(
    session: WriteSession, rt: Runtime, action: str, caller: TeamCaller, team_id: int, row: ApiKey
) -> None:
    audit.add_entry(
        session,
        action,
        at=rt.clock.now(),
        actor_id=caller.user_id,
        target=team_id,
        detail=row.key_prefix,
    )
