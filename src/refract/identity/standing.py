"""Those who stay connected: whether they would still be let in is asked once a second, for all of them together."""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from sqlalchemy import Select, or_, select

from refract.core.errors import Unavailable
from refract.core.rows import slices
from refract.core.runtime import Runtime
from refract.identity.models import ApiKey, BrowserSession, KeyStatus, User, UserStatus
from refract.identity.sessions import is_live
from refract.identity.visitors import Actor

LOOK_SECONDS: Final = 1.0
Kind = type[ApiKey] | type[BrowserSession] | type[User]
Credential = tuple[Kind, int]


class Watched:
    """Somebody who is connected. `gone` once the key, the session or the person they came with is no longer good."""

    def __init__(self, actor: Actor) -> None:
        self.credential = _credential(actor)
        self.gone = False


class Standing:
    """One of these lives as long as the runtime (`rt.part(Standing)`); it looks only while somebody is connected."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._here: set[Watched] = set()
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    @asynccontextmanager
    async def watching(self, actor: Actor) -> AsyncIterator[Watched]:
        """Keep an eye on somebody for as long as the block runs."""
        one = Watched(actor)
        self._here.add(one)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on(), context=contextvars.Context())
        try:
            yield one
        finally:
            self._here.discard(one)

    async def look(self) -> None:
        """Ask now, with one statement for each kind of credential that somebody came with."""
        here = list(self._here)
        good: set[Credential] = set()
        async with self._rt.db.read() as session:
            for kind, question in _good_ones(self._rt, self._rt.clock.now()).items():
                for some in slices(sorted({number for of, number in (one.credential for one in here) if of is kind})):
                    good.update((kind, number) for number in await session.scalars(question.where(kind.id.in_(some))))
        for one in here:
            one.gone = one.credential not in good

    async def _look_on(self) -> None:
        while self._here:
            await self._rt.clock.sleep(LOOK_SECONDS)
            with contextlib.suppress(Unavailable):  # nobody is turned away because the database is
                await self.look()


def _credential(actor: Actor) -> Credential:
    if actor.key_id is not None:
        return ApiKey, actor.key_id
    return (BrowserSession, actor.session.id) if actor.session is not None else (User, actor.user.id)


def _good_ones(rt: Runtime, now: datetime) -> dict[Kind, Select[int]]:
    """By each kind of credential, those that let somebody in."""
    active = User.status == UserStatus.ACTIVE
    return {
        ApiKey: select(ApiKey.id)
        .join(User, User.id == ApiKey.user_id)
        .where(ApiKey.status == KeyStatus.ACTIVE, or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now), active),
        BrowserSession: select(BrowserSession.id).join(User, User.id == BrowserSession.user_id).where(is_live(rt, now)),
        User: select(User.id).where(active),
    }
