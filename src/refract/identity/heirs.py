"""Who takes over the links and lists of a deleted account: a person, or a team."""

from collections.abc import Sequence

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.identity.errors import AccountNotFound, NewOwnerRequired
from refract.identity.models import User, UserStatus
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.identity.users import get_active_user, get_user_by_email


async def choose_heir(
    session: WriteSession,
    user: User,
    heir: str,
    hooks: Sequence[PersonalDataHook],
    *,
    by_admin: bool = False,
) -> AccountDeletion:
    """Return the deletion of a user with an heir: an email address, or the handle of a team.

    Administrators may name an account by its id too, and any team. Raises `NewOwnerRequired`, or
    `UserNotFound` and `AmbiguousEmail` for an address.
    """
    heir = heir.strip()
    if "@" not in heir and not (by_admin and heir.isdecimal()):
        team_id = await lock_heir_team(session, user, heir, hooks, by_admin=by_admin)
        if team_id is None:
            raise NewOwnerRequired
        return AccountDeletion(user, heir_team=team_id)
    try:
        find = get_active_user if by_admin else get_user_by_email
        person = await find(session, heir)
    except AccountNotFound as exc:
        raise NewOwnerRequired from exc
    if person.id == user.id:
        raise NewOwnerRequired
    return AccountDeletion(user, person)


async def lock_heir_team(
    session: WriteSession,
    user: User,
    team: str | int,
    hooks: Sequence[PersonalDataHook],
    *,
    by_admin: bool,
) -> int | None:
    """Lock the team with a handle or id that takes over; None if it cannot."""
    for hook in hooks:
        if hook.lock_heir_team is not None and team != "":
            return await hook.lock_heir_team(session, user, team, by_admin)
    return None


async def lock_accounts(session: WriteSession, deletion: AccountDeletion) -> User:
    """Lock the account and its heir, in the order of their ids, and return the account.

    Raises `NewOwnerRequired` if the heir has been suspended or deleted meanwhile.
    """
    user_ids = {deletion.user.id, *([deletion.heir.id] if deletion.heir else [])}
    query = select(User).where(User.id.in_(sorted(user_ids))).order_by(User.id).with_for_update()
    locked = await session.scalars(query.execution_options(populate_existing=True))
    users = {user.id: user for user in locked}
    if deletion.heir and users[deletion.heir.id].status != UserStatus.ACTIVE:
        raise NewOwnerRequired
    return users[deletion.user.id]
