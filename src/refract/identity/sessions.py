"""Browser sessions and the one-time links that begin them."""

import secrets
from datetime import timedelta

from sqlalchemy import CursorResult, delete, select, update

from refract.core.db import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.core.secrets import digest
from refract.identity import audit
from refract.identity.errors import SessionNotFound, SigninLinkSpent
from refract.identity.models import BrowserSession, SigninLink, User, UserStatus

LINK_HOURS = 1
SEEN_EVERY = timedelta(minutes=10)


async def make_signin_link(session: WriteSession, rt: Runtime, user: User) -> str:
    """The address of a one-time sign-in; only its digest is kept."""
    token = secrets.token_urlsafe(32)
    now = rt.clock.now()
    session.add(
        SigninLink(
            id=rt.ids.next_id(), user_id=user.id, token_hash=digest(token), created_at=now, expires_at=now + timedelta(hours=LINK_HOURS)
        )
    )
    await audit.note(session, rt, "signin_link.made", target=str(user.id))
    await session.flush()
    return f"{rt.settings.public_url}/auth/sign-in/{token}"


async def peek_signin_link(session: ReadSession, rt: Runtime, token: str) -> User | None:
    """Whom a link would sign in; looking does not use it up, so a link preview cannot spend it."""
    now = rt.clock.now()
    return await session.scalar(
        select(User)
        .join(SigninLink, SigninLink.user_id == User.id)
        .where(
            SigninLink.token_hash == digest(token),
            SigninLink.used_at.is_(None),
            SigninLink.expires_at > now,
            User.status == UserStatus.ACTIVE,
        )
    )


async def spend_signin_link(session: WriteSession, rt: Runtime, token: str) -> User:
    """Use a link up. Of two at once, one gets in."""
    now = rt.clock.now()
    unused = update(SigninLink).where(SigninLink.token_hash == digest(token), SigninLink.used_at.is_(None), SigninLink.expires_at > now)
    spent = await session.execute(unused.values(used_at=now))
    if not isinstance(spent, CursorResult) or spent.rowcount != 1:
        raise SigninLinkSpent
    user = await session.scalar(
        select(User)
        .join(SigninLink, SigninLink.user_id == User.id)
        .where(SigninLink.token_hash == digest(token), User.status == UserStatus.ACTIVE)
    )
    if user is None:
        raise SigninLinkSpent
    return user


async def begin_session(session: WriteSession, rt: Runtime, user: User, agent: str) -> str:
    """A new session with a new token, whatever the browser had before. The answer is the cookie's value."""
    token = secrets.token_urlsafe(32)
    now = rt.clock.now()
    session.add(
        BrowserSession(
            id=rt.ids.next_id(),
            user_id=user.id,
            token_hash=digest(token),
            agent=agent[:200],
            created_at=now,
            last_seen_at=now,
            expires_at=now + timedelta(days=rt.settings.session_days),
        )
    )
    await session.flush()
    return token


async def find_session(session: ReadSession, rt: Runtime, token: str) -> tuple[BrowserSession, User] | None:
    found = await session.execute(
        select(BrowserSession, User)
        .join(User, User.id == BrowserSession.user_id)
        .where(BrowserSession.token_hash == digest(token), BrowserSession.expires_at > rt.clock.now(), User.status == UserStatus.ACTIVE)
    )
    row = found.one_or_none()
    return None if row is None else (row[0], row[1])


async def keep_alive(session: WriteSession, rt: Runtime, seen: BrowserSession) -> None:
    """Push the end of a session that is in use, at most every ten minutes."""
    now = rt.clock.now()
    await session.execute(
        update(BrowserSession)
        .where(BrowserSession.id == seen.id)
        .values(last_seen_at=now, expires_at=min(now + timedelta(days=rt.settings.session_days), seen.created_at + timedelta(days=90)))
    )


async def sessions_of(session: ReadSession, rt: Runtime, user: User) -> list[BrowserSession]:
    """Newest first."""
    wanted = select(BrowserSession).where(BrowserSession.user_id == user.id, BrowserSession.expires_at > rt.clock.now())
    return list(await session.scalars(wanted.order_by(BrowserSession.created_at.desc(), BrowserSession.id.desc())))


async def end_session(session: WriteSession, token: str) -> None:
    await session.execute(delete(BrowserSession).where(BrowserSession.token_hash == digest(token)))


async def end_session_by_id(session: WriteSession, user: User, session_id: int) -> None:
    ended = await session.execute(delete(BrowserSession).where(BrowserSession.id == session_id, BrowserSession.user_id == user.id))
    if not isinstance(ended, CursorResult) or ended.rowcount != 1:
        raise SessionNotFound


async def end_other_sessions(session: WriteSession, user: User, kept_id: int | None) -> None:
    ended = delete(BrowserSession).where(BrowserSession.user_id == user.id)
    await session.execute(ended if kept_id is None else ended.where(BrowserSession.id != kept_id))


async def forget_old(session: WriteSession, rt: Runtime) -> None:
    """Remove what can no longer sign anybody in."""
    now = rt.clock.now()
    await session.execute(delete(BrowserSession).where(BrowserSession.expires_at < now))
    await session.execute(delete(SigninLink).where(SigninLink.expires_at < now))
