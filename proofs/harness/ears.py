"""Connections to each single process of a site.

Behind one port, the kernel decides who answers, and a proof must know.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proofs.harness.site import Site
from proofs.harness.wire import Answer, Cut, Wire, get

REST = 1.5


class Ear:
    """A kept-alive connection to one process, used by one request at a time."""

    def __init__(self, pid: int, wire: Wire) -> None:
        self.pid = pid
        self._wire = wire
        self._turn = asyncio.Lock()
        self._idle = True

    async def ask(self, request: bytes) -> Answer:
        async with self._turn:
            self._idle = False
            return await self._wire.ask(request, 10.0)

    async def stay_awake(self) -> None:
        with contextlib.suppress(Cut, TimeoutError):
            while True:
                await asyncio.sleep(REST)
                if self._idle:
                    await self.ask(get("/health"))
                self._idle = True

    def close(self) -> None:
        self._wire.close()


@asynccontextmanager
async def ears(site: Site, each: int) -> AsyncIterator[dict[int, list[Ear]]]:
    """So many connections to each process, best opened before any load.

    All processes but one sleep meanwhile, so that one must answer.
    """
    pids = site.listening()
    found: dict[int, list[Ear]] = {}
    for pid in pids:
        others = [other for other in pids if other != pid]
        for other in others:
            os.kill(other, signal.SIGSTOP)
        try:
            found[pid] = [Ear(pid, await _open(site.port)) for _ in range(each)]
        finally:
            for other in others:
                os.kill(other, signal.SIGCONT)
    keepers = [asyncio.create_task(ear.stay_awake()) for group in found.values() for ear in group]
    try:
        yield found
    finally:
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        for group in found.values():
            for ear in group:
                ear.close()


async def _open(port: int) -> Wire:
    wire = await Wire.open(port)
    await wire.ask(get("/health"))
    return wire


async def metric(ear: Ear, name: str, label: str = "") -> float:
    """A figure of this one process, by the metrics it publishes."""
    answer = await ear.ask(get("/metrics"))
    for line in answer.body.decode().splitlines():
        if line.startswith(name) and label in line:
            return float(line.rpartition(" ")[2])
    raise LookupError(name)
