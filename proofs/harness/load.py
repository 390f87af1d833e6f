"""Load that remembers: closed-loop clients on kept-alive connections, every request noted with its
id and its outcome.

A click carries its id as `utm_content`, so that each single one can be found in the database again;
a write carries it as its Idempotency-Key and inside what it writes. A click is never tried twice. A
write may be, under the same key.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from proofs.harness.journal import Journal, Kind, Outcome, Record
from proofs.harness.wire import Answer, Cut, Wire, get, request

KNOCK_AGAIN = 0.05
PATIENCE = 30.0
AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0"
    " Safari/537.36"
)


class Ask(NamedTuple):
    """A request to be made. `subject` is the index of the link that is clicked."""

    kind: Kind
    data: bytes
    subject: int = 0


Make = Callable[[int], Ask]


def clicking(names: Sequence[str]) -> Make:
    """Each name in turn."""

    def make(number: int) -> Ask:
        subject = number % len(names)
        return Ask(
            Kind.CLICK,
            get(f"/{names[subject]}?utm_content={number}", f"user-agent: {AGENT}"),
            subject,
        )

    return make


def writing(key: str, path: str, body: Callable[[int], dict[str, object]]) -> Make:
    """A POST whose content and Idempotency-Key carry the id."""

    def make(number: int) -> Ask:
        headers = (f"x-api-key: {key}", f"idempotency-key: proof-{number}")
        return Ask(Kind.WRITE, request("POST", path, json.dumps(body(number)).encode(), *headers))

    return make


class Bounds(NamedTuple):
    """How much of it, and where it ends by itself whatever else happens."""

    connections: int
    requests: int
    seconds: float


class Load:
    """Some connections that ask one thing after another.

    `stop` ends it early, after the requests under way.
    """

    def __init__(
        self,
        port: int,
        journal: Journal,
        make: Make,
        bounds: Bounds,
        *,
        pause: Callable[[], float] | None = None,
        stay: Callable[[], int] | None = None,
        retry: bool = False,
    ) -> None:
        """`pause` is the rest between two requests, `stay` how many requests a connection is used
        for before a new one is opened.
        """
        self._port = port
        self._journal = journal
        self._make = make
        self._connections = bounds.connections
        self._left = bounds.requests
        self._seconds = bounds.seconds
        self._pause = pause
        self._stay = stay
        self._retry = retry
        self._stopped = False
        self.seen: Callable[[Record, Answer], None] | None = None

    async def run(self) -> None:
        self._deadline = time.monotonic() + self._seconds
        await asyncio.gather(*(self._client() for _ in range(self._connections)))

    def stop(self) -> None:
        self._stopped = True

    @property
    def _over(self) -> bool:
        return self._stopped or self._left <= 0 or time.monotonic() >= self._deadline

    async def _client(self) -> None:
        wire: Wire | None = None
        leave = self._stay() if self._stay else 0
        while not self._over:
            if wire is not None and leave and wire.answered >= leave and self._stay:
                wire.close()
                wire, leave = None, self._stay()
            self._left -= 1
            number = self._journal.new_id()
            ask = self._make(number)
            wire, settled = await self._attempt(wire, number, ask)
            while self._retry and not settled and not self._over:
                wire, settled = await self._attempt(wire, number, ask)
            if self._pause is not None:
                await asyncio.sleep(self._pause())
        if wire is not None:
            wire.close()

    async def _attempt(self, wire: Wire | None, number: int, ask: Ask) -> tuple[Wire | None, bool]:
        """One request on a connection that is open or opened for it; False asks for another try."""
        began = time.monotonic()
        outcome, answer = Outcome.REFUSED, None
        try:
            if wire is None or not wire.usable:
                wire = await Wire.open(self._port)
            outcome = Outcome.CUT
            answer = await wire.ask(ask.data, PATIENCE)
            outcome = Outcome.ANSWERED
        except Cut as exc:
            if wire is not None and wire.answered and not exc.received:
                outcome = Outcome.CROSSED
            wire = None
        except TimeoutError:
            wire, outcome = None, Outcome.LATE
        except OSError:
            wire = None
            await asyncio.sleep(KNOCK_AGAIN)
        status = answer.status if answer else 0
        record = Record(number, began, time.monotonic(), ask.subject, status, ask.kind, outcome)
        self._journal.note(record)
        if answer is not None:
            if self.seen is not None:
                self.seen(record, answer)
            if answer.status == 503 and self._retry:
                await asyncio.sleep(0.1)
        return wire, answer is not None and answer.status != 503


@asynccontextmanager
async def under(*loads: Load) -> AsyncIterator[None]:
    """These loads for as long as the block runs; requests under way at its end are waited for."""
    tasks = [asyncio.create_task(load.run()) for load in loads]
    try:
        yield
    finally:
        for load in loads:
            load.stop()
        await asyncio.gather(*tasks)
