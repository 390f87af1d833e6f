"""Graceful stop: no request fails while a server drains."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from proofs.harness import proc, stage
from proofs.harness.site import Site, site
from proofs.harness.wire import Wire, get, request
from tests.waiting import eventually, keeps

BODY = b'{"destination": "https://example.com/late"}'


@asynccontextmanager
async def _serving(home: Path, workers: int = 1, **environment: str) -> AsyncIterator[Site]:
    async with site(home, workers=workers, **environment) as made:
        made.start()
        await made.until_complete()
        yield made


async def _half_sent(made: Site) -> Wire:
    """An accepted request whose body is still to come; its credential was checked."""
    async with made.runtime() as rt:
        key = await stage.make_key(rt)
    wire = await Wire.open(made.port)
    assert (await wire.ask(get("/health"))).status == 200
    wire.send(request("POST", "/api/v1/links", BODY, f"x-api-key: {key}")[: -len(BODY)])
    await asyncio.sleep(0.1)
    return wire


def _still_listening(made: Site, pids: Iterable[int]) -> list[int]:
    """Return those of these processes that accept connections, with or without their parent."""
    return [pid for pid in pids if proc.polls_a_listener(pid, made.port)]


@asynccontextmanager
async def _on_terminal(home: Path, workers: int) -> AsyncIterator[tuple[Site, Callable[[], None]]]:
    """A server that was started in a terminal, and what closes the terminal."""
    ours, theirs = os.openpty()
    async with site(home, workers=workers, before=("setsid", "--ctty")) as made:
        made.start(stdin=theirs)
        os.close(theirs)
        await made.until_complete()
        yield made, lambda: os.close(ours)


async def test_a_request_that_was_begun_is_answered_and_told_to_go(tmp_path: Path) -> None:
    async with _serving(tmp_path) as made:
        wire = await _half_sent(made)
        stopped = asyncio.create_task(made.stop())
        await eventually(lambda: not made.listening())
        answer = await wire.ask(BODY)
        assert answer.status == 201
        assert answer.closes
        assert await stopped == 0


async def test_an_open_connection_gets_one_more_answer(tmp_path: Path) -> None:
    async with _serving(tmp_path, REFRACT_STOP_GRACE_SECONDS="5") as made:
        idle, asking = await Wire.open(made.port), await Wire.open(made.port)
        assert not (await asking.ask(get("/health"))).closes
        stopped = asyncio.create_task(made.stop())
        await eventually(lambda: not made.listening())
        answer = await asking.ask(get("/health"))
        assert (answer.status, answer.closes) == (200, True)
        assert (
            await idle.ask(get("/health"))
        ).status == 200  # accepted, and not yet read when the stop came
        assert await stopped == 0


async def test_processes_without_their_parent_finish_what_they_have(tmp_path: Path) -> None:
    async with _serving(tmp_path, workers=2) as made:
        wire = await _half_sent(made)
        listening = made.listening()
        os.kill(made.pid, signal.SIGKILL)
        await eventually(lambda: not _still_listening(made, listening))
        assert (await wire.ask(BODY)).status == 201


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_terminal_that_closes_stops_it_in_good_order(tmp_path: Path, workers: int) -> None:
    """SIGHUP means a closed terminal, which the process can detect, or a reload."""
    async with _on_terminal(tmp_path, workers) as (made, close_terminal):
        wire = await _half_sent(made)
        listening = made.listening()
        close_terminal()
        await eventually(lambda: not _still_listening(made, listening))
        assert (await wire.ask(BODY)).status == 201
        assert await made.stop() == 0


async def test_a_reload_of_one_process_keeps_it_and_fails_nobody(tmp_path: Path) -> None:
    """SIGHUP ended a server with one process; `systemctl reload` was an outage."""
    async with _serving(tmp_path) as made:
        wire = await _half_sent(made)
        os.kill(made.pid, signal.SIGHUP)
        await eventually(lambda: bool(proc.children(made.pid)))
        assert (await wire.ask(BODY)).status == 201
        await eventually(lambda: "server_processes_replaced" in made.log)
        other = await Wire.open(made.port)
        assert (await other.ask(get("/health"))).status == 200
        os.kill(made.pid, signal.SIGHUP)  # and again, by now as the parent
        await eventually(lambda: made.log.count("server_processes_replaced") == 2)
        assert (await (await Wire.open(made.port)).ask(get("/health"))).status == 200
        assert await made.stop() == 0
        assert "Traceback" not in made.log


async def test_a_child_leaves_sighup_to_its_parent(tmp_path: Path) -> None:
    async with _serving(tmp_path, workers=2) as made:
        before = set(made.servers())
        for pid in before:
            os.kill(pid, signal.SIGHUP)
        await keeps(lambda: set(made.servers()) == before, 0.3)
        assert await made.stop() == 0
