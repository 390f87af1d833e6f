"""Changes of links and teams at the same time, in the order that once went wrong."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.models import Link, LinkOwner
from refract.links.service import lifecycle, team_rows
from tests import make
from tests.waiting import eventually

pytestmark = pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
"""SQLite has one writer at a time."""


async def test_a_member_who_leaves_while_the_link_gets_the_team_keeps_no_row(
    rt: Runtime, ada: User, bob: User, cleo: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleo stops being an owner, the link gets her team, and she leaves it."""
    now = rt.clock.now()
    async with rt.db.write() as session:
        crew = await make.team(session, rt, ada, cleo)
        link = await make.link(session, rt, ada)
        await service.add_owner(session, make.who(ada), link.id, cleo.email, now)
    teams_read, team_added, left, waits = (asyncio.Event() for _ in range(4))
    names = ("lock_link", "lock_teams")
    lock_link, lock_teams = [getattr(team_rows, name) for name in names]

    async def lock_link_later(*args: Any, **given: Any) -> Any:
        if not teams_read.is_set():
            teams_read.set()
            await team_added.wait()
            await left.wait()
        return await lock_link(*args, **given)

    async def lock_teams_seen(session: Any, team_ids: Any) -> None:
        if team_ids and left.is_set():
            waits.set()
        await lock_teams(session, team_ids)

    monkeypatch.setattr(team_rows, "lock_link", lock_link_later)
    monkeypatch.setattr(team_rows, "lock_teams", lock_teams_seen)

    async def remove_owner() -> None:
        async with rt.db.write() as session:
            await service.remove_owner(session, make.who(ada), link.id, cleo.id, now)

    removal = asyncio.create_task(remove_owner())
    await teams_read.wait()
    async with rt.db.write() as session:
        await service.add_team(session, make.who(ada), link.id, "crew", now)
    team_added.set()
    async with rt.db.write() as session:
        await make.leave(session, rt, crew, cleo)
        left.set()
        blocked = asyncio.create_task(waits.wait())
        await asyncio.wait({removal, blocked}, return_when=asyncio.FIRST_COMPLETED)
    await removal
    blocked.cancel()

    async with rt.db.read() as reading:
        rows = await reading.scalars(select(LinkOwner.user_id).where(LinkOwner.link_id == link.id))
        assert list(rows) == [ada.id]


async def test_a_member_joins_while_a_link_of_the_team_is_purged(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        crew = await make.team(session, rt, ada)
        kept = await make.link(session, rt, ada, team="crew")
        link = await make.link(session, rt, ada, team="crew")
        await service.delete_link(session, make.who(ada), link.id, rt.clock.now())
    clock.advance(timedelta(days=100).total_seconds())
    seen: list[str] = []

    async def join() -> None:
        async with rt.db.write() as session:
            await make.join(session, rt, crew, bob)

    asked: list[int] = []

    def is_waiting() -> bool:
        """Return whether the other transaction has run no further statement for some turns."""
        asked.append(len(seen))
        return seen != [] and len(asked) > 20 and asked[-1] == asked[-20]

    async with rt.db.write() as session:
        assert await lifecycle.purge_links(session, rt.clock.now(), timedelta(days=30)) == 1
        stop = count_statements(rt.db.engine, seen.append)
        joining = asyncio.create_task(join())
        await eventually(is_waiting)
    stop()
    await joining

    async with rt.db.read() as reading:
        assert list(await reading.scalars(select(Link.id))) == [kept.id]
        rows = await reading.scalars(select(LinkOwner.user_id).where(LinkOwner.link_id == kept.id))
        assert set(rows) == {ada.id, bob.id}
