"""Waiting for a connection: as long as the pool makes progress, else only for a moment."""

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any, cast
from unittest.mock import Mock

import pytest
from httpx import AsyncClient
from sqlalchemy import text

from refract.core.db import engine as db_engine
from refract.core.errors import StoreOverloaded
from refract.core.runtime import Runtime
from tests import make
from tests.client import by_key

PATIENCE = 1.0


@pytest.fixture
def pool(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The pool of writers, with a timeout that a test can wait for."""
    found = cast("Any", rt.db.engine.pool)
    monkeypatch.setattr(found, "_timeout", PATIENCE)
    return found


async def _hold(rt: Runtime, seconds: float) -> None:
    async with rt.db.write() as session:
        await session.execute(text("SELECT 1"))
        await asyncio.sleep(seconds)


async def test_a_crowd_is_let_in_one_after_another(rt: Runtime, pool: Any) -> None:
    # Opening them takes its time, and is not a queue.
    await asyncio.gather(*(_hold(rt, 0) for _ in range(pool.size())))
    crowd = 6 * pool.size()
    began = time.monotonic()
    await asyncio.gather(*(_hold(rt, PATIENCE / 4) for _ in range(crowd)))
    assert time.monotonic() - began > PATIENCE


async def test_a_queue_that_stands_still_is_left(rt: Runtime, pool: Any) -> None:
    holders = [asyncio.create_task(_hold(rt, 60)) for _ in range(pool.size())]
    while pool.checkedout() < pool.size():  # noqa: ASYNC110 - a pool sets no event
        await asyncio.sleep(0.01)
    with pytest.raises(StoreOverloaded):
        await _hold(rt, 0)
    for one in holders:
        one.cancel()
    await asyncio.gather(*holders, return_exceptions=True)


async def test_whoever_has_waited_in_vain_is_told_at_once(
    rt: Runtime, client: AsyncClient, pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy database is retried three times; a queue without progress is not."""
    async with rt.db.write() as session:
        key = await make.key(session, rt, await make.person(session, rt))
    await client.get(
        "/api/v1/links", headers=by_key(key)
    )  # from now on the key is known, and nothing about it is written
    async with AsyncExitStack() as held:
        for _ in range(pool.size()):
            await (await held.enter_async_context(rt.db.write())).connection()
        waited = Mock(wraps=pool._do_get)
        monkeypatch.setattr(pool, "_do_get", waited)
        answer = await client.post(
            "/api/v1/links", json={"destination": "https://example.com"}, headers=by_key(key)
        )
    assert (answer.status_code, answer.json()["code"], waited.call_count) == (
        503,
        "STORE_OVERLOADED",
        1,
    )
    assert "retry-after" in answer.headers


async def test_connections_that_break_are_no_sign_of_life(rt: Runtime, pool: Any) -> None:
    async def broken() -> None:
        async with rt.db.write() as session:
            await session.connection()
            await asyncio.sleep(PATIENCE / 2)
            await session.invalidate()

    crowd = [asyncio.create_task(broken()) for _ in range(8 * pool.size())]
    ended = await asyncio.gather(*crowd, return_exceptions=True)
    assert sum(isinstance(one, StoreOverloaded) for one in ended) > pool.size()


async def test_nobody_waits_for_ever(
    rt: Runtime, pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db_engine, "MAX_QUEUE_SECONDS", 2 * PATIENCE)
    crowd = [asyncio.create_task(_hold(rt, PATIENCE / 3)) for _ in range(15 * pool.size())]
    ended = await asyncio.gather(*crowd, return_exceptions=True)
    assert {type(one) for one in ended} == {type(None), StoreOverloaded}


@pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
async def test_connections_are_opened_before_they_are_needed(rt: Runtime, pool: Any) -> None:
    await rt.db.open_connections(3)
    assert pool.checkedin() >= 3
