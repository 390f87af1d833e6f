"""No connection is lost between the kernel's accept queue and the server."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from proofs.harness.site import site
from proofs.harness.wire import Wire, get, request
from refract.server.listener import get_accept_queue_length, stop_accepting
from tests.waiting import eventually, keeps


def _listener() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(16)
    made.setblocking(False)
    return made


def _knock(listener: socket.socket) -> socket.socket:
    client = socket.socket()
    client.settimeout(0.3)
    try:
        client.connect(listener.getsockname())
    except OSError:
        client.close()
        raise
    return client


async def test_who_is_in_the_queue_is_waited_for_and_nobody_new_gets_in() -> None:
    with _listener() as listener, _knock(listener), _knock(listener):
        assert get_accept_queue_length(listener) == 2
        silent = asyncio.create_task(stop_accepting(listener, wait_seconds=20))
        await keeps(lambda: not silent.done())
        with pytest.raises(TimeoutError):
            _knock(listener)
        for _ in range(2):
            listener.accept()[0].close()
        await silent
        assert get_accept_queue_length(listener) == 0


async def test_it_does_not_wait_for_ever() -> None:
    with _listener() as listener, _knock(listener):
        await stop_accepting(listener, wait_seconds=0.1)
        assert get_accept_queue_length(listener) == 1


async def test_requests_that_lay_in_the_queue_are_answered_by_a_server_that_stops(
    tmp_path: Path,
) -> None:
    """The server is asleep when they come, and wakes up to a stop."""
    for workers in (1, 2):
        async with site(tmp_path, workers=workers) as made:
            made.start()
            await made.until_complete()
            family = {made.pid, *made.servers()}
            for pid in family:
                os.kill(pid, signal.SIGSTOP)
            wires = [await Wire.open(made.port) for _ in range(40)]
            asked = [asyncio.create_task(wire.ask(get("/health"))) for wire in wires]
            await eventually(lambda wires=wires: all(wire.busy for wire in wires))
            # As systemd does, unless it is told to leave the children to their parent.
            for pid in family:
                os.kill(pid, signal.SIGTERM)
            for pid in family:
                os.kill(pid, signal.SIGCONT)
            assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
            assert await made.stop() == 0


async def test_a_request_under_way_is_answered_though_its_process_is_told_to_stop_by_everybody(
    tmp_path: Path,
) -> None:
    """By a service manager or a terminal, by its parent, and by the parent's end."""
    whole = request("POST", "/api/v1/links", b'{"destination": "https://example.com/"}')
    async with site(tmp_path, workers=2) as made:
        made.start()
        await made.until_complete()
        wire = await Wire.open(made.port)
        asked = asyncio.create_task(wire.ask(whole[:-10]))
        await asyncio.sleep(0.2)
        for pid in (*made.servers(), made.pid):
            os.kill(pid, signal.SIGTERM)
        await eventually(lambda: not made.listening())
        wire.send(whole[-10:])
        assert (await asked).status == 401
        assert await made.stop() == 0


async def test_a_site_that_stops_refuses_new_clients_instead_of_keeping_them_waiting(
    tmp_path: Path,
) -> None:
    """Refused, a balancer goes elsewhere; let in and forgotten, its request is lost."""
    async with site(tmp_path, workers=2, REFRACT_STOP_GRACE_SECONDS="5") as made:
        made.start()
        await made.until_complete()
        keeping_it_busy = await Wire.open(made.port)
        assert (await keeping_it_busy.ask(get("/health"))).status == 200
        stopped = asyncio.create_task(made.stop())
        refused = False
        while not stopped.done() and not refused:
            try:
                (await Wire.open(made.port)).close()
                await asyncio.sleep(0.1)
            except ConnectionRefusedError:
                refused = True
        assert refused
        assert not stopped.done()
        assert (await keeping_it_busy.ask(get("/health"))).status == 200
        assert await stopped == 0
