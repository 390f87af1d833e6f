"""Changes of links from outside the process under test, as another node makes them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.links.models import Link, LinkTotals
from tests import make

Result = TypeVar("Result")


class Outside:
    """Another node. Every call is its own transaction."""

    def __init__(self, data_dir: Path, **settings: Any) -> None:
        self._settings = Settings(data_dir=data_dir, **settings)
        self._owner: User | None = None

    def run(self, work: Callable[[Runtime], Awaitable[Result]]) -> Result:
        async def go() -> Result:
            async with open_runtime(self._settings) as rt:
                return await work(rt)

        return asyncio.run(go())

    def write(self, work: Callable[[WriteSession, Runtime], Awaitable[Result]]) -> Result:
        async def go(rt: Runtime) -> Result:
            async with rt.db.write() as session:
                return await work(session, rt)

        return self.run(go)

    @property
    def owner(self) -> User:
        if self._owner is None:
            self._owner = self.write(lambda session, rt: make.person(session, rt, "outsider"))
        return self._owner

    def link(self, destination: str = make.DESTINATION, **given: Any) -> Link:
        owner = self.owner
        return self.write(lambda session, rt: make.link(session, rt, owner, destination, **given))

    def clicks(self, link_id: int) -> int:
        async def count(rt: Runtime) -> int:
            async with rt.db.read() as session:
                row = await session.scalar(select(LinkTotals).where(LinkTotals.link_id == link_id))
                return row.total_clicks + row.bot_clicks if row else 0

        return self.run(count)

    @staticmethod
    def code(link_id: int) -> str:
        return encode_base62(link_id)
