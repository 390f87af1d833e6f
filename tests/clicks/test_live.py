"""The live stream: an event immediately and with every change; bounded, and ended by a stop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.clicks.stats import live
from refract.clicks.stats.live import LiveTotals, LiveTotalsWatcher, stream_totals
from refract.core.clock import ManualClock
from refract.core.errors import StoreUnavailable
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.identity import revocation
from refract.identity.models import User
from tests import make
from tests.clicks.counting import BOT, click, stored
from tests.client import by_key, on_sqlite
from tests.serving import serving
from tests.waiting import PATIENCE


def events_in(body: str) -> list[dict[str, Any]]:
    return [
        json.loads(line.removeprefix("data: "))
        for line in body.splitlines()
        if line.startswith("data: ")
    ]


async def test_the_stream_tells_totals_and_changes(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock advances with every sleep, so that the minute of a stream takes a moment."""
    monkeypatch.setattr(revocation, "CHECK_INTERVAL", 0.0)  # so that only the stream moves it
    async with rt.db.write() as session:
        link, key = (await make.link(session, rt, ada)).id, await make.key(session, rt, ada)
    await stored(rt, [click(link, clock.now()), click(link, clock.now(), agent=BOT)])

    response = await client.get(f"/api/v1/links/{link}/stats/live", headers=by_key(key))

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    assert response.text.startswith("retry: ")
    (first,) = events_in(response.text)
    assert (first["clicks"], first["bots"]) == (1, 1)
    assert first["last_clicked_at"] == "2026-06-01T12:00:00Z"
    assert response.text.count(": still here") == 3  # every fifteen seconds of a minute
    assert rt.singleton(LiveTotalsWatcher).stream_count == 0


async def test_each_change_is_told_once_to_everybody(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        live, "MAX_STREAM_SECONDS", 1e9
    )  # the clock runs on while the database stores
    heard: list[list[LiveTotals]] = [[], []]

    async def listen(into: list[LiveTotals]) -> None:
        async for totals in stream_totals(rt, 42, lambda: len(into) == 3):
            if totals is not None:
                into.append(totals)  # noqa: PERF401 - others look at it meanwhile

    async def clicks() -> None:
        for number in range(2):
            while min(map(len, heard)) <= number:  # noqa: ASYNC110 - the streams set no event
                await asyncio.sleep(0)
            await stored(rt, [click(42, clock.now())])

    async with asyncio.timeout(60):
        await asyncio.gather(*(listen(one) for one in heard), clicks())
    assert [[one.clicks for one in each] for each in heard] == [[0, 1, 2], [0, 1, 2]]


@on_sqlite
async def test_a_hundred_watchers_ask_the_database_no_more_than_one(
    rt: Runtime, clock: ManualClock
) -> None:
    watched = rt.singleton(LiveTotalsWatcher)
    with ExitStack() as watching:
        for number in range(100):
            watching.enter_context(watched.watch(number % 7))
        for second in range(1, 4):
            await asyncio.gather(*(watched.get_totals(number % 7) for number in range(100)))
            assert watched.query_count == second
            clock.advance(1)
    assert watched.stream_count == 0


@on_sqlite
async def test_streams_are_bounded(
    rt: Runtime, client: AsyncClient, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rt.db.write() as session:
        link, key = (await make.link(session, rt, ada)).id, await make.key(session, rt, ada)
    monkeypatch.setattr(live, "MAX_STREAMS", 1)
    with rt.singleton(LiveTotalsWatcher).watch(link):
        response = await client.get(f"/api/v1/links/{link}/stats/live", headers=by_key(key))
    assert (response.status_code, response.json()["code"]) == (503, "TOO_MANY_STREAMS")
    assert "retry-after" in response.headers


@on_sqlite
async def test_a_database_that_is_away_is_waited_for(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = rt.singleton(LiveTotalsWatcher)
    real, away = watched._poll, [True, True]

    async def look() -> None:
        if away:
            away.pop()
            raise StoreUnavailable
        await real()

    monkeypatch.setattr(watched, "_poll", look)
    told = [totals async for totals in stream_totals(rt, 42, lambda: not away)]
    assert told == [LiveTotals()]


@on_sqlite
async def test_the_stream_ends_when_the_process_stops(
    app: WebNode, rt: Runtime, client: AsyncClient, ada: User, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        link, key = (await make.link(session, rt, ada)).id, await make.key(session, rt, ada)
    before = clock.monotonic()
    app.start_draining()
    response = await client.get(f"/api/v1/links/{link}/stats/live", headers=by_key(key))
    assert response.status_code == 200
    assert clock.monotonic() - before < 5


@asynccontextmanager
async def streaming(url: str, key: str) -> AsyncIterator[AsyncIterator[str]]:
    async with (
        httpx.AsyncClient(timeout=PATIENCE) as browser,
        browser.stream("GET", url, headers=by_key(key)) as answer,
    ):
        assert answer.status_code == 200
        yield answer.aiter_lines()


async def test_a_click_shows_within_seconds_on_a_real_server_and_drain_ends_the_stream(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data") as served:
        async with (
            open_runtime(Settings(data_dir=tmp_path / "data")) as rt,
            rt.db.write() as session,
        ):
            ada = await make.person(session, rt)
            made, key = (
                await make.link(session, rt, ada, name="seen"),
                await make.key(session, rt, ada),
            )
        async with (
            streaming(f"{served.url}/api/v1/links/{made.id}/stats/live", key) as lines,
            asyncio.timeout(PATIENCE),
        ):
            assert (await _next(lines))["clicks"] == 0
            async with httpx.AsyncClient(timeout=PATIENCE) as visitor:
                answer = await visitor.get(
                    f"{served.url}/seen",
                    headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"},
                )
            assert answer.status_code == 302
            assert (await _next(lines))["clicks"] == 1
            served.process.terminate()
            assert [
                line async for line in lines if line.startswith("data: ")
            ] == []  # ended, not cut


async def _next(lines: AsyncIterator[str]) -> dict[str, Any]:
    async for line in lines:
        if line.startswith("data: "):
            found: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return found
    raise AssertionError("the stream ended")
