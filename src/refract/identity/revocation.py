"""Revocation of open connections: their credentials are checked together, once a second."""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from sqlalchemy import Select, or_, select

from refract.core.db.bulk import iter_batches
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.models import ApiKey, BrowserSession, KeyStatus, User, UserStatus
from refract.identity.sessions import build_live_condition, get_live_values

CHECK_INTERVAL: Final = 1.0
CredentialModel = type[ApiKey] | type[BrowserSession] | type[User]
Credential = tuple[CredentialModel, int]


class WatchedCaller:
    """A connected caller. `revoked` once the key, session or user is no longer valid."""

    def __init__(self, actor: Caller) -> None:
        self.credential = _get_credential(actor)
        self.revoked = False


class RevocationWatcher:
    """Checks the credentials of connected callers. One per runtime; idle without connections."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._watched: set[WatchedCaller] = set()
        self._check_task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._check_task is not None:
            self._check_task.cancel()
            await asyncio.gather(self._check_task, return_exceptions=True)

    @asynccontextmanager
    async def watch(self, actor: Caller) -> AsyncIterator[WatchedCaller]:
        """Watch a caller while the block runs."""
        watched = WatchedCaller(actor)
        self._watched.add(watched)
        if self._check_task is None or self._check_task.done():
            self._check_task = asyncio.create_task(
                self._check_repeatedly(), context=contextvars.Context()
            )
        try:
            yield watched
        finally:
            self._watched.discard(watched)

    async def check(self) -> None:
        """Check all watched callers now, with one statement for each kind of credential."""
        callers = list(self._watched)
        valid: set[Credential] = set()
        async with self._rt.db.read() as session:
            for kind, query in _select_valid_credentials(self._rt, self._rt.clock.now()).items():
                for ids in iter_batches(
                    sorted(
                        {
                            number
                            for of, number in (caller.credential for caller in callers)
                            if of is kind
                        }
                    )
                ):
                    valid.update(
                        (kind, number)
                        for number in await session.scalars(query.where(kind.id.in_(ids)))
                    )
        for caller in callers:
            caller.revoked = caller.credential not in valid

    async def _check_repeatedly(self) -> None:
        while self._watched:
            await self._rt.clock.sleep(CHECK_INTERVAL)
            with contextlib.suppress(Unavailable):  # an unavailable database closes no connections
                await self.check()


def _get_credential(actor: Caller) -> Credential:
    if actor.key_id is not None:
        return ApiKey, actor.key_id
    return (
        (BrowserSession, actor.session.id) if actor.session is not None else (User, actor.user.id)
    )


def _select_valid_credentials(rt: Runtime, now: datetime) -> dict[CredentialModel, Select[int]]:
    """Return a query for the valid credentials of each kind."""
    active = User.status == UserStatus.ACTIVE
    return {
        ApiKey: (
            select(ApiKey.id)
            .join(User, User.id == ApiKey.user_id)
            .where(
                ApiKey.status == KeyStatus.ACTIVE,
                or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now),
                active,
            )
        ),
        BrowserSession: (
            select(BrowserSession.id)
            .join(User, User.id == BrowserSession.user_id)
            .where(build_live_condition())
            .params(get_live_values(rt))
        ),
        User: select(User.id).where(active),
    }
