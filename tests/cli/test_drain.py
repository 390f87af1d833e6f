"""A stop that fails nobody: what a client sees of a server that is on its way out."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proofs.harness.site import Site, site
from proofs.harness.wire import Wire, get, request

BODY = b'{"name": "late"}'
SLOW = request("POST", "/api/v1/keys", BODY)


@asynccontextmanager
async def _serving(home: Path, workers: int = 1, **environment: str) -> AsyncIterator[Site]:
    async with site(home, workers=workers, **environment) as made:
        made.start()
        await made.until_complete()
        yield made


async def _half_sent(made: Site) -> Wire:
    """A request whose body is still to come, already in the server's hands."""
    wire = await Wire.open(made.port)
    assert (await wire.ask(get("/health"))).status == 200
    wire.send(SLOW[: -len(BODY)])
    await asyncio.sleep(0.1)
    return wire


async def test_a_request_that_was_begun_is_answered_and_told_to_go(tmp_path: Path) -> None:
    async with _serving(tmp_path) as made:
        wire = await _half_sent(made)
        stopped = asyncio.create_task(made.stop())
        await asyncio.sleep(0.3)
        answer = await wire.ask(BODY)
        assert answer.status == 401
        assert answer.closes
        assert await stopped == 0


async def test_an_open_connection_gets_one_more_answer(tmp_path: Path) -> None:
    async with _serving(tmp_path, REFRACT_STOP_GRACE_SECONDS="5") as made:
        idle, asking = await Wire.open(made.port), await Wire.open(made.port)
        assert not (await asking.ask(get("/health"))).closes
        stopped = asyncio.create_task(made.stop())
        await asyncio.sleep(0.3)
        answer = await asking.ask(get("/health"))
        assert (answer.status, answer.closes) == (200, True)
        assert (await idle.ask(get("/health"))).status == 200  # accepted, and not yet read when the stop came
        assert await stopped == 0


async def test_processes_without_their_parent_finish_what_they_have(tmp_path: Path) -> None:
    async with _serving(tmp_path, workers=2) as made:
        wire = await _half_sent(made)
        os.kill(made.pid, signal.SIGKILL)
        await asyncio.sleep(0.5)
        assert (await wire.ask(BODY)).status == 401


async def test_a_terminal_that_closes_stops_it_in_good_order(tmp_path: Path) -> None:
    async with _serving(tmp_path) as made:
        wire = await _half_sent(made)
        os.kill(made.pid, signal.SIGHUP)
        await asyncio.sleep(0.3)
        assert (await wire.ask(BODY)).status == 401
        assert await made.stop() == 0


async def test_a_child_leaves_sighup_to_its_parent(tmp_path: Path) -> None:
    async with _serving(tmp_path, workers=2) as made:
        before = set(made.servers())
        for pid in before:
            os.kill(pid, signal.SIGHUP)
        await asyncio.sleep(0.5)
        assert set(made.servers()) == before
        assert await made.stop() == 0
