"""Accounts: look-up, creation of local ones, profile changes."""

import unicodedata
from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.exc import IntegrityError

from refract.core.db.bulk import iter_batches
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.identity import audit
from refract.identity.errors import AccountNotFound, AmbiguousEmail, UserNotFound
from refract.identity.models import LOCAL_ISSUER, User, UserPlan, UserRole, UserStatus

OWNER_SUBJECT = "owner"


def fold_email(email: str) -> str:
    """Return the form in which email addresses are compared."""
    return unicodedata.normalize("NFC", email.strip()).casefold()[:255]


async def find_owner(session: ReadSession) -> User | None:
    """Return the operator's account, or None before the first start."""
    owner = select(User).where(User.issuer == LOCAL_ISSUER, User.subject == OWNER_SUBJECT)
    return (await session.scalars(owner)).one_or_none()


async def ensure_owner(session: WriteSession, rt: Runtime) -> tuple[User, bool]:
    """Return the operator's account, and whether it was created just now."""
    if (found := await find_owner(session)) is not None:
        return found, False
    try:
        async with session.begin_nested():
            return (
                await create_local_user(
                    session,
                    rt,
                    rt.settings.owner_email,
                    subject=OWNER_SUBJECT,
                    role=UserRole.ADMIN,
                    name="Owner",
                ),
                True,
            )
    except IntegrityError:  # another starting process was first
        if (found := await find_owner(session)) is None:
            raise
        return found, False


async def create_local_user(
    session: WriteSession, rt: Runtime, email: str, *, subject: str, role: UserRole, name: str = ""
) -> User:
    """Create an account that signs in with one-time links. Administrators vouch for the email."""
    now = rt.clock.now()
    user = User(
        id=rt.ids.next_id(),
        issuer=LOCAL_ISSUER,
        subject=subject,
        email=email,
        email_folded=fold_email(email),
        email_verified=bool(email),
        display_name=name,
        preferences={},
        plan=UserPlan.FREE,
        role=role,
        status=UserStatus.ACTIVE,
        created_at=now,
        last_sync_at=now,
    )
    session.add(user)
    await session.flush()
    return user


async def get_user_by_email(session: ReadSession, email: str) -> User:
    """Return the active user with this verified email. Raises `UserNotFound`, `EmailAmbiguous`."""
    query = select(User).where(
        User.email_folded == fold_email(email),
        User.status == UserStatus.ACTIVE,
        User.email_verified,
    )
    found = list(await session.scalars(query.limit(2)))
    if not found:
        raise UserNotFound(email=email)
    if len(found) > 1:
        raise AmbiguousEmail(email=email)
    return found[0]


async def get_active_user(session: ReadSession, account: str) -> User:
    """Return the active user with this id or verified email. Raises as `get_user_by_email`."""
    if not (account.isascii() and account.isdigit()):
        return await get_user_by_email(session, account)
    found = (await get_users_by_id(session, [parse_id(account)])).get(int(account))
    if found is None or found.status != UserStatus.ACTIVE:
        raise AccountNotFound
    return found


async def get_users_by_id(session: ReadSession, ids: Collection[int]) -> dict[int, User]:
    """Return accounts by id; missing ones are left out."""
    found: dict[int, User] = {}
    for batch in iter_batches(sorted(ids)):
        found |= {user.id: user for (user,) in await session.fetch(_USERS, ids=batch)}
    return found


_USERS = PreparedSelect(lambda: select(User).where(User.id.in_(bindparam("ids", expanding=True))))


async def change_profile(
    session: WriteSession,
    user_id: int,
    changes: dict[str, Any],
    preferences: dict[str, Any],
    *,
    at: datetime,
) -> User:
    """Update profile fields and preferences; those that are not named stay."""
    user = await session.get_one(User, user_id)
    for field in ("nickname", "avatar_url", "bio"):
        if field in changes:
            setattr(user, field, changes[field])
    if preferences:
        user.preferences = {**user.preferences, **preferences}
    if session.is_modified(user):
        fields = [*(field for field in changes if field != "preferences"), *preferences]
        audit.add_entry(
            session,
            "profile.changed",
            at=at,
            actor_id=user_id,
            target=user_id,
            detail=", ".join(fields),
        )
    await session.flush()
    return user


async def save_preferences(session: WriteSession, user_id: int, changes: dict[str, Any]) -> None:
    """Remember how a user arranges a page. Locked, so that two tabs keep both changes."""
    query = select(User).where(User.id == user_id).with_for_update()
    user = (await session.scalars(query)).one()
    user.preferences = {**user.preferences, **changes}
