"""Visitors of several redirect nodes.

Who is cut off, or finds nobody, goes to the next node, as a front would send them.

Each attempt is a click with an id of its own, so nothing that is counted is counted for another. A
visit is answered when one of its attempts is.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence

from proofs.harness.journal import Journal, Kind, Outcome, Record
from proofs.harness.load import Make
from proofs.harness.wire import Cut, Wire

PATIENCE = 30.0
ATTEMPTS = 3


class Visits:
    """Some visitors, one visit after another. `stop` ends it after the visits under way."""

    def __init__(
        self,
        ports: Sequence[int],
        journal: Journal,
        make: Make,
        visitors: int,
        pause: Callable[[], float],
        chance: random.Random,
    ) -> None:
        self.made = 0
        self.answered = 0
        self.unanswered: list[str] = []
        self._ports = list(ports)
        self._journal = journal
        self._make = make
        self._visitors = visitors
        self._pause = pause
        self._chance = chance
        self._stopped = False

    async def run(self) -> None:
        await asyncio.gather(*(self._visitor() for _ in range(self._visitors)))

    def stop(self) -> None:
        self._stopped = True

    async def _visitor(self) -> None:
        wires: dict[int, Wire] = {}
        while not self._stopped:
            await self._visit(wires)
            await asyncio.sleep(self._pause())
        for wire in wires.values():
            wire.close()

    async def _visit(self, wires: dict[int, Wire]) -> None:
        self.made += 1
        first = self._chance.randrange(len(self._ports))
        said = ""
        for attempt in range(ATTEMPTS):
            port = self._ports[(first + attempt) % len(self._ports)]
            record = await self._attempt(wires, port)
            if record.outcome == Outcome.ANSWERED and record.status == 302:
                self.answered += 1
                return
            outcome, seconds = Outcome(record.outcome).name, record.ended - record.began
            said += f" {outcome}:{record.status}:{seconds:.2f}s"
            if record.outcome == Outcome.REFUSED:
                await asyncio.sleep(0.02)
        self.unanswered.append(f"at {time.monotonic():.1f}{said}")

    async def _attempt(self, wires: dict[int, Wire], port: int) -> Record:
        number = self._journal.new_id()
        ask = self._make(number)
        began, outcome, status = time.monotonic(), Outcome.REFUSED, 0
        try:
            wire = wires.get(port)
            if wire is None or not wire.usable:
                wire = wires[port] = await Wire.open(port)
            outcome = Outcome.CUT
            status = (await wire.ask(ask.data, PATIENCE)).status
            outcome = Outcome.ANSWERED
        except (Cut, OSError, TimeoutError) as exc:
            wires.pop(port, None)
            if isinstance(exc, TimeoutError):
                outcome = Outcome.LATE
        record = Record(number, began, time.monotonic(), ask.subject, status, Kind.CLICK, outcome)
        self._journal.note(record)
        return record
