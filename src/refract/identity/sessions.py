"""Browser sessions and one-time sign-in links."""

import secrets
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, bindparam, delete, or_, select, update

from refract.core.db.bulk import get_rowcount
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import try_insert
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity import audit
from refract.identity.errors import SessionNotFound, SignInLinkExpired
from refract.identity.models import (
    LOCAL_ISSUER,
    BrowserSession,
    SigninLink,
    SpentToken,
    User,
    UserStatus,
)

SIGNIN_LINK_HOURS = 1
LAST_SEEN_INTERVAL = timedelta(minutes=10)
MAX_SESSION_AGE = timedelta(days=90)


async def create_signin_link(
    session: WriteSession, rt: Runtime, user: User, *, by: User | None = None
) -> str:
    """Return the URL of a new one-time sign-in link; only its digest is stored.

    `by` is the administrator who asks for it, None for the operator's terminal.
    """
    token = secrets.token_urlsafe(32)
    now = rt.clock.now()
    session.add(
        SigninLink(
            id=rt.ids.next_id(),
            user_id=user.id,
            token_hash=hash_credential(token),
            created_at=now,
            expires_at=now + timedelta(hours=SIGNIN_LINK_HOURS),
        )
    )
    await audit.record_event(session, rt, "signin_link.made", actor=by, target=str(user.id))
    await session.flush()
    return f"{rt.settings.public_url}/auth/sign-in/{token}"


async def has_signin_trace(session: ReadSession, user_id: int) -> bool:
    """Return whether a user has a session or a sign-in link, or had one until recently."""
    for model in (BrowserSession, SigninLink):
        query = select(model.id).where(model.user_id == user_id).limit(1)
        if await session.scalar(query) is not None:
            return True
    return False


async def find_signin_link_user(session: ReadSession, rt: Runtime, token: str) -> User | None:
    """Return the user of an unused link, without using it up: a link preview must not."""
    now = rt.clock.now()
    return await session.scalar(
        select(User)
        .join(SigninLink, SigninLink.user_id == User.id)
        .where(
            SigninLink.token_hash == hash_credential(token),
            SigninLink.used_at.is_(None),
            SigninLink.expires_at > now,
            User.status == UserStatus.ACTIVE,
        )
    )


async def use_signin_link(session: WriteSession, rt: Runtime, token: str) -> User:
    """Use up a link and return its user. Of two concurrent uses, one succeeds."""
    now = rt.clock.now()
    unused = update(SigninLink).where(
        SigninLink.token_hash == hash_credential(token),
        SigninLink.used_at.is_(None),
        SigninLink.expires_at > now,
    )
    spent = await session.execute(unused.values(used_at=now))
    if get_rowcount(spent) != 1:
        raise SignInLinkExpired
    user = await session.scalar(
        select(User)
        .join(SigninLink, SigninLink.user_id == User.id)
        .where(SigninLink.token_hash == hash_credential(token), User.status == UserStatus.ACTIVE)
    )
    if user is None:
        raise SignInLinkExpired
    user.last_sync_at = now
    return user


async def create_session(
    session: WriteSession, rt: Runtime, user: User, agent: str, *, sid: str | None = None
) -> str:
    """Create a session with a new token; return the value of the cookie.

    `sid` is the provider's id of its own session, by which it can end this one.
    """
    token = secrets.token_urlsafe(32)
    now = rt.clock.now()
    session.add(
        BrowserSession(
            id=rt.ids.next_id(),
            user_id=user.id,
            token_hash=hash_credential(token),
            agent=agent[:200],
            created_at=now,
            last_seen_at=now,
            expires_at=_get_session_end(rt, user, now),
            sid=sid,
        )
    )
    await session.flush()
    return token


def _get_session_end(rt: Runtime, user: User, created_at: datetime) -> datetime:
    """Return when a session that is used now expires if it is not used again."""
    return min(
        rt.clock.now() + timedelta(days=rt.settings.session_days),
        created_at + _get_max_age(rt, user),
    )


def _get_max_age(rt: Runtime, user: User) -> timedelta:
    """Return the maximum age. Sessions of providers are shorter, since accounts end there."""
    return (
        MAX_SESSION_AGE
        if user.issuer == LOCAL_ISSUER
        else timedelta(days=rt.settings.session_max_days)
    )


def build_live_condition() -> ColumnElement[bool]:
    """Return the condition for valid sessions, for a query that joins the user.

    Its parameters are `get_live_values`.
    """
    return and_(
        BrowserSession.expires_at > bindparam("now"),
        User.status == UserStatus.ACTIVE,
        or_(User.issuer == LOCAL_ISSUER, BrowserSession.created_at > bindparam("created_after")),
    )


def get_live_values(rt: Runtime) -> dict[str, datetime]:
    """Return the parameters of `build_live_condition`.

    The current setting bounds sessions that an earlier release or setting made longer.
    """
    now = rt.clock.now()
    return {"now": now, "created_after": now - timedelta(days=rt.settings.session_max_days)}


_LIVE_SESSION = PreparedSelect(
    lambda: (
        select(BrowserSession, User)
        .join(User, User.id == BrowserSession.user_id)
        .where(BrowserSession.token_hash == bindparam("token_hash"), build_live_condition())
    )
)


async def find_session(
    session: ReadSession, rt: Runtime, token: str
) -> tuple[BrowserSession, User] | None:
    values = get_live_values(rt)
    found = await session.fetch(_LIVE_SESSION, token_hash=hash_credential(token), **values)
    return (found[0][0], found[0][1]) if found else None


async def extend_session(
    session: WriteSession, rt: Runtime, user: User, seen: BrowserSession
) -> None:
    """Extend a session that is in use. Callers do so at most every `LAST_SEEN_INTERVAL`."""
    expires_at = _get_session_end(rt, user, seen.created_at)
    await session.execute(
        update(BrowserSession)
        .where(BrowserSession.id == seen.id)
        .values(last_seen_at=rt.clock.now(), expires_at=expires_at)
    )


async def list_sessions(session: ReadSession, rt: Runtime, user: User) -> list[BrowserSession]:
    """Return the valid sessions of a user, newest first."""
    rows = await session.fetch(_OWN_SESSIONS, user_id=user.id, **get_live_values(rt))
    return [row[0] for row in rows]


_OWN_SESSIONS = PreparedSelect(
    lambda: (
        select(BrowserSession)
        .join(User, User.id == BrowserSession.user_id)
        .where(BrowserSession.user_id == bindparam("user_id"), build_live_condition())
        .order_by(BrowserSession.created_at.desc(), BrowserSession.id.desc())
    )
)


async def end_session(session: WriteSession, token: str) -> None:
    await session.execute(
        delete(BrowserSession).where(BrowserSession.token_hash == hash_credential(token))
    )


async def end_session_by_id(session: WriteSession, user: User, session_id: int) -> None:
    ended = await session.execute(
        delete(BrowserSession).where(
            BrowserSession.id == session_id, BrowserSession.user_id == user.id
        )
    )
    if get_rowcount(ended) != 1:
        raise SessionNotFound


async def end_provider_sessions(
    session: WriteSession, issuer: str, *, subject: str | None, sid: str | None
) -> int:
    """End the session `sid` of a provider, or all sessions of `subject`; return how many.

    With both, sessions of the subject without a stored `sid` are ended too: it may be one of them.
    """
    user_ids = select(User.id).where(User.issuer == issuer)
    if subject is not None:
        user_ids = user_ids.where(User.subject == subject)
    ended = delete(BrowserSession).where(BrowserSession.user_id.in_(user_ids))
    if sid is not None:
        named = BrowserSession.sid == sid
        ended = ended.where(named if subject is None else or_(named, BrowserSession.sid.is_(None)))
    result = await session.execute(ended.execution_options(synchronize_session=False))
    return get_rowcount(result)


async def spend_token(session: WriteSession, token: str, *, until: datetime) -> bool:
    """Mark a single-use token as used; return False if it already was. The unique key decides."""
    return await try_insert(
        session, SpentToken, {"digest": hash_credential(token), "expires_at": until}
    )


async def end_other_sessions(session: WriteSession, user: User, kept_id: int | None) -> None:
    ended = delete(BrowserSession).where(BrowserSession.user_id == user.id)
    await session.execute(ended if kept_id is None else ended.where(BrowserSession.id != kept_id))


async def delete_expired_sessions(session: WriteSession, rt: Runtime) -> None:
    """Delete expired sessions, sign-in links and spent tokens."""
    now = rt.clock.now()
    await session.execute(delete(BrowserSession).where(BrowserSession.expires_at < now))
    await session.execute(delete(SigninLink).where(SigninLink.expires_at < now))
    await session.execute(delete(SpentToken).where(SpentToken.expires_at < now))
