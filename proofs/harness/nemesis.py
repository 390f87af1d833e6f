"""Faults by a seed, each noted with its moment.

Only processes that the proof started are ever touched.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.servers import Server

BLOW = """
import os, signal, sys, time
time.sleep(float(sys.argv[1]))
pids = [int(word) for word in sys.argv[2:]]
latest = time.monotonic() + 0.3
while time.monotonic() < latest:
    with open(f"/proc/{pids[0]}/stat", "rb") as file:
        if file.read().rpartition(b")")[2].split()[0] == b"R":
            break
else:
    latest = 0
at = time.monotonic()
for pid in pids:
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        pass
time.sleep(0.001)
for pid in pids:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
print(at, time.monotonic(), int(latest > 0))
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done to whom.

    `at` is on the machine's monotonic clock, as the client's journal is; `until` is when it was
    over.

    `busy` says that the victim was running at that moment, not waiting for something to do.
    """

    kind: str
    victim: str
    pid: int
    at: float
    until: float
    busy: bool = False


class Nemesis:
    """Does harm and keeps account of it.

    Of the faults, and of what it cost in CPU seconds to come back from some.
    """

    def __init__(self, seed: int, path: Path) -> None:
        self.random = random.Random(seed)
        self.faults: list[Fault] = []
        self.costs: list[float] = []
        self._path = path

    async def wait(self, least: float, most: float) -> None:
        await asyncio.sleep(self.random.uniform(least, most))

    async def kill(self, victim: str, *pids: int) -> float:
        """SIGKILL to one or to several at once, while the first of them is at work.

        The moment it was sent.

        By a process of its own: between two steps of the client's event loop the server may have
        answered all there is to answer. The victims are held where they are for a millisecond
        first, so that somebody has asked whom they will never answer.
        """
        words = [str(self.random.uniform(0, 0.05)), *map(str, pids)]
        helper = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-c", BLOW, *words, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await helper.communicate()
        at, until, busy = said.split()
        self.note(Fault("SIGKILL", victim, pids[0], float(at), float(until), busy=busy == b"1"))
        return float(at)

    async def pause(self, pid: int, victim: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT a while later.

        A process that everybody believes alive and that does nothing.
        """
        at = time.monotonic()
        self._send(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._send(pid, signal.SIGCONT)
        self.note(Fault("SIGSTOP", victim, pid, at, time.monotonic()))

    def send(self, pid: int, number: signal.Signals, victim: str) -> float:
        """SIGTERM, SIGHUP: requests rather than blows."""
        at = time.monotonic()
        self._send(pid, number)
        self.note(Fault(number.name, victim, pid, at, at))
        return at

    async def restart(self, server: Server, *, hard: bool) -> None:
        """A database server goes and comes back; `hard` as if the machine had run out of memory."""
        at, pid = time.monotonic(), server.pid or 0
        await asyncio.to_thread(server.kill if hard else server.stop)
        await asyncio.to_thread(server.start)
        self.note(Fault("restart", server.name, pid, at, time.monotonic()))

    @staticmethod
    def _send(pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def note(self, fault: Fault) -> None:
        """Faults that others make are accounted for here, too."""
        self.faults.append(fault)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(fault)) + "\n")
