"""Blocked domains as lists see them: a copy in memory, read again when it has changed."""

from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.links.blocking import Blocked, epoch


class BlockedDomains:
    """One per process. Whoever asks brings the epoch along that came with what they have read, so an old copy is never gone by."""

    def __init__(self, _rt: Runtime) -> None:
        self._blocked = Blocked()

    async def as_of(self, session: ReadSession, seen: int) -> Blocked:
        if not self._blocked.knows(seen):
            fresh = Blocked()
            await fresh.load(session)
            self._blocked = fresh
        return self._blocked

    async def now(self, session: ReadSession) -> Blocked:
        return await self.as_of(session, await epoch(session))
