"""Builders: a person, a key, a browser session in one line. A feature adds its own (`make.link`, `make.tag`) below these.

Each takes the session that the test opened, so that a test's set-up is one transaction.
"""

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity import keys, people, sessions
from refract.identity.models import Scope, User, UserRole, UserStatus

READ_WRITE = (Scope.READ, Scope.WRITE)
ALL = (Scope.READ, Scope.WRITE, Scope.ADMIN)


async def user(
    session: WriteSession,
    rt: Runtime,
    name: str = "ada",
    *,
    role: UserRole = UserRole.USER,
    status: UserStatus = UserStatus.ACTIVE,
) -> User:
    """A person whose address is `name@example.com`."""
    made = await people.make_local_user(session, rt, f"{name}@example.com", subject=name, role=role, name=name.capitalize())
    made.status = status
    await session.flush()
    return made


async def admin(session: WriteSession, rt: Runtime, name: str = "root") -> User:
    return await user(session, rt, name, role=UserRole.ADMIN)


async def suspended(session: WriteSession, rt: Runtime, name: str = "sam") -> User:
    """Keys and sessions can still be made for them; they open nothing."""
    return await user(session, rt, name, status=UserStatus.SUSPENDED)


async def key(session: WriteSession, rt: Runtime, owner: User, *scopes: Scope, name: str = "test") -> str:
    """A key in the clear; read and write unless told otherwise."""
    return (await keys.create_key(session, rt, owner, name, list(scopes or READ_WRITE)))[1]


async def revoked_key(session: WriteSession, rt: Runtime, owner: User) -> str:
    row, clear = await keys.create_key(session, rt, owner, "revoked", list(READ_WRITE))
    await keys.revoke_key(session, owner, row.id)
    return clear


async def cookie(session: WriteSession, rt: Runtime, owner: User) -> str:
    """The value of the cookie of a browser that has signed in."""
    return await sessions.begin_session(session, rt, owner, "Mozilla/5.0 (test)")
