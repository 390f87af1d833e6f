"""Open connections end once their credential is revoked."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from httpx import AsyncClient

from refract.clicks.stats import live
from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity import keys, sessions
from refract.identity.authentication import Caller
from refract.identity.models import Scope, User, UserStatus
from refract.identity.revocation import RevocationWatcher
from tests import make
from tests.client import by_key, on_sqlite


async def _actors(rt: Runtime, user: User) -> dict[str, Caller]:
    async with rt.db.write() as session:
        row, _ = await keys.create_key(session, rt, user, "x", [])
        await make.cookie(session, rt, user)
        (browser,) = await sessions.list_sessions(session, rt, user)
    all_of = frozenset(Scope)
    return {
        "key": Caller(user, all_of, key_id=row.id),
        "session": Caller(user, all_of, session=browser),
        "token": Caller(user, all_of),
    }


async def test_each_way_of_coming_in_ends_with_its_own_end(rt: Runtime, clock: ManualClock) -> None:
    standing = RevocationWatcher(rt)
    async with rt.db.write() as session:
        ada, bob = await make.person(session, rt, "ada"), await make.person(session, rt, "bob")
    actors = await _actors(rt, ada)
    others = await _actors(rt, bob)
    async with AsyncExitStack() as connected:
        seen = {
            name: await connected.enter_async_context(standing.watch(one))
            for name, one in actors.items()
        }
        rest = [
            await connected.enter_async_context(standing.watch(caller))
            for caller in others.values()
        ]

        async def gone() -> list[str]:
            await standing.check()
            assert not any(watched.revoked for watched in rest)
            return [name for name, one in seen.items() if one.revoked]

        assert await gone() == []
        async with rt.db.write() as session:
            await keys.revoke_key(session, ada, actors["key"].key_id or 0)
        assert await gone() == ["key"]
        async with rt.db.write() as session:
            await sessions.end_other_sessions(session, ada, None)
        assert await gone() == ["key", "session"]
        async with rt.db.write() as session:
            (await session.get_one(User, ada.id)).status = UserStatus.SUSPENDED
        assert await gone() == ["key", "session", "token"]
    await standing.close()


@on_sqlite
async def test_a_session_that_ran_out_is_over_and_who_is_many_costs_no_more_than_one(
    rt: Runtime, clock: ManualClock
) -> None:
    standing = RevocationWatcher(rt)
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
    actors = await _actors(rt, ada)
    statements: list[str] = []
    async with AsyncExitStack() as connected:
        seen = [
            await connected.enter_async_context(standing.watch(actors["session"]))
            for _ in range(50)
        ]
        await standing.close()  # it would look by itself meanwhile
        stop = count_statements(rt.db.read_engine, statements.append)
        await standing.check()
        stop()
        assert (
            len([statement for statement in statements if "SELECT" in statement]),
            any(watched.revoked for watched in seen),
        ) == (1, False)
        clock.advance(31 * 86_400)
        await standing.check()
        assert all(watched.revoked for watched in seen)
    await standing.close()


@on_sqlite
async def test_a_live_stream_ends_with_the_key_it_was_opened_with(
    rt: Runtime, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lifetime is a minute; with a revoked key it is a second."""
    monkeypatch.setattr(
        live, "MAX_STREAM_SECONDS", 1e12
    )  # by the test's clock, which runs as fast as it can
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        link = await make.link(session, rt, ada)
        row, clear = await keys.create_key(session, rt, ada, "x", [Scope.READ])

    async def revoke() -> None:
        while not rt.singleton(live.LiveTotalsWatcher).stream_count:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)
        async with rt.db.write() as session:
            await keys.revoke_key(session, ada, row.id)

    async with asyncio.timeout(60):
        answer, _ = await asyncio.gather(
            client.get(f"/api/v1/links/{link.id}/stats/live", headers=by_key(clear)), revoke()
        )
    assert answer.status_code == 200
    assert rt.singleton(live.LiveTotalsWatcher).stream_count == 0
    await rt.close()
