"""Click limits over 4 processes and over 3 nodes with Redis: never one redirect more.

Visitors follow links with limits of 1, 10, 1,000 and 100,000, all at once, while processes and
nodes are killed (-9) and one node loses its database for seconds at a time. In the end the
database must have counted exactly the limit. No visitor gets a redirect beyond it, and only those
whose request failed may miss theirs: the answer was cut off, or the node never learned that it was
counted.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from proofs import kill
from proofs.harness import proc, stage
from proofs.harness.fleet import Fleet, fleet
from proofs.harness.proxy import Proxy, proxied
from proofs.harness.report import Report
from proofs.harness.site import Site, site
from proofs.harness.wire import Answer, Cut, Wire
from refract.core.runtime import Runtime
from refract.links.limits.models import LinkLimit

NODES = {"web": 0, "redirect": 3, "worker": 0}
PROCESSES = 4
PATIENCE = 5.0
"""Seconds after which a visitor goes to another node."""
PERSON = "Accept: text/html\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0\r\n"


@dataclass(frozen=True, slots=True)
class Size:
    """The limits, how many visitors there are at once, and how often something breaks."""

    limits: Sequence[int]
    visitors: int
    every: float
    cut: float


SIZES = {
    "short": Size(limits=(1, 10, 150), visitors=8, every=0.5, cut=0.5),
    "full": Size(limits=(1, 10, 1_000, 100_000), visitors=24, every=5.0, cut=3.0),
}


@dataclass(slots=True)
class Visits:
    """What the visitors of one link saw."""

    limit: int
    redirected: int = 0
    refused: int = 0
    """Answers that say that the limit is reached."""
    unclear: int = 0
    """Requests without a complete answer: they may have been counted."""
    others: Counter[int] = field(default_factory=Counter)
    """Further answers by status, such as 503 while the database is away."""

    @property
    def answered(self) -> int:
        return self.redirected + self.refused

    def note(self, answer: Answer, destination: str) -> None:
        if answer.header("location") == destination or destination.encode() in answer.body:
            self.redirected += 1
        elif answer.status == 410:
            self.refused += 1
        else:
            self.others[answer.status] += 1


class Crowd:
    """The visitors of a link. They stop once everything is whole again and the limit is reached."""

    def __init__(self, link: stage.Planted, limit: int, ports: Sequence[int], seed: int) -> None:
        self.visits = Visits(limit)
        self.is_whole = asyncio.Event()
        self._link = link
        self._ports = ports
        self._random = random.Random(seed)
        method, length = ("POST", "Content-Length: 0\r\n") if limit < 10 else ("GET", "")
        head = f"{method} /{link.name} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        self._request = f"{head}{PERSON}{length}\r\n".encode()

    async def run(self, visitors: int) -> None:
        await asyncio.gather(*(self._visit() for _ in range(visitors)))

    async def _visit(self) -> None:
        wire: Wire | None = None
        while True:
            is_whole = self.is_whole.is_set()
            if wire is None or not wire.usable:
                try:
                    wire = await Wire.open(self._random.choice(self._ports))
                except OSError:  # the node is down
                    await asyncio.sleep(0.05)
                    continue
            answer = await self._ask(wire)
            if answer is None or answer.closes:
                wire.close()
                wire = None
            if answer is not None:
                self.visits.note(answer, self._link.destination)
                if answer.status == 410:
                    if is_whole:
                        break
                    await asyncio.sleep(0.2)
        if wire is not None:
            wire.close()

    async def _ask(self, wire: Wire) -> Answer | None:
        try:
            return await wire.ask(self._request, PATIENCE)
        except (Cut, TimeoutError):
            self.visits.unclear += 1
            return None


Break = Callable[[random.Random], Awaitable[str]]
"""Breaks something, mends it and returns what it was."""


async def _torment(breaks: Sequence[Break], crowds: Sequence[Crowd], size: Size, seed: int) -> str:
    """Break something at intervals until every limit is reached once; then all is left whole.

    Nothing is broken before somebody was answered since the last time: starting takes a while.
    """
    chance, done = random.Random(seed), Counter[str]()
    while not all(crowd.visits.refused for crowd in crowds) or len(done) < len(breaks):
        answered = _count_answered(crowds)
        while _count_answered(crowds) == answered:  # noqa: ASYNC110 - counts nobody signals
            await asyncio.sleep(0.05)
        await asyncio.sleep(size.every)
        done[await breaks[done.total() % len(breaks)](chance)] += 1
    for crowd in crowds:
        crowd.is_whole.set()
    return ", ".join(f"{number} × {kind}" for kind, number in sorted(done.items()))


def _count_answered(crowds: Sequence[Crowd]) -> int:
    return sum(crowd.visits.answered for crowd in crowds)


async def _run(
    report: Report, rt: Runtime, ports: Sequence[int], breaks: Sequence[Break], size: Size
) -> Report:
    began = time.monotonic()
    crowds: list[Crowd] = []
    links: list[stage.Planted] = []
    for limit in size.limits:
        links += await stage.plant(rt, 1, prefix=f"limit-{limit}", click_limit=limit)
        crowds.append(Crowd(links[-1], limit, ports, report.seed + limit))
    visiting = asyncio.gather(*(crowd.run(size.visitors) for crowd in crowds))
    report.say("broken meanwhile", await _torment(breaks, crowds, size, report.seed))
    await visiting
    report.say("seconds", f"{time.monotonic() - began:.0f}")
    async with rt.db.read() as session:
        rows = await session.execute(select(LinkLimit.link_id, LinkLimit.taken))
        taken = {link_id: number for link_id, number in rows}  # noqa: C416 - typed rows
    for link, crowd in zip(links, crowds, strict=True):
        _judge(report, crowd.visits, taken.get(link.id, 0))
    return report


def _judge(report: Report, visits: Visits, taken: int) -> None:
    limit = visits.limit
    report.bar(
        f"limit {limit:,}: redirects that visitors got",
        visits.redirected,
        f"≤ {limit:,}",
        held=visits.redirected <= limit,
    )
    report.bar(f"limit {limit:,}: counted", taken, f"{limit:,}", held=taken == limit)
    missing, lost = limit - visits.redirected, visits.unclear + visits.others.total()
    report.bar(
        f"limit {limit:,}: counted, but lost on their way",
        missing,
        f"≤ {lost:,} failed",
        held=missing <= lost,
    )
    others = ", ".join(f"{number:,} × {status}" for status, number in visits.others.items())
    report.say(f"limit {limit:,}: refused", f"{visits.refused:,}" + (f"; {others}" * bool(others)))


async def _run_processes(home: Path, dialect: str, size: Size, seed: int) -> Report:
    async with site(home, dialect, workers=PROCESSES) as made, made.runtime() as rt:
        made.start()
        await made.until_complete()

        async def kill_one(chance: random.Random) -> str:
            proc.kill(chance.choice(made.servers()))
            await made.until_complete()
            return "a process killed"

        async def kill_all(_chance: random.Random) -> str:
            made.kill_all()
            await kill.revive(made)
            await made.until_complete()
            return "all processes killed"

        report = Report(f"click limits: {PROCESSES} processes, {dialect}", seed)
        return await _run(report, rt, [made.port], (kill_one, kill_all), size)


async def _run_nodes(home: Path, dialect: str, size: Size, seed: int) -> Report:
    async with (
        fleet(home, dialect, NODES) as made,
        _apart(made) as proxy,
        made.redirects[0].runtime() as rt,
    ):
        await made.start()

        async def kill_one(chance: random.Random) -> str:
            victim: Site = chance.choice(made.redirects)
            victim.kill_all()
            await kill.revive(victim)
            return "a node killed"

        async def cut_one(_chance: random.Random) -> str:
            proxy.cut = "all"
            await asyncio.sleep(size.cut)
            proxy.heal()
            return "a node cut off"

        ports = [node.port for node in made.redirects]
        report = Report(f"click limits: 3 nodes with Redis, {dialect}", seed)
        return await _run(report, rt, ports, (kill_one, cut_one), size)


@asynccontextmanager
async def _apart(made: Fleet) -> AsyncIterator[Proxy]:
    """Let the last node reach its database over a line that can be cut."""
    node = made.redirects[-1]
    async with AsyncExitStack() as opened:
        proxy, url = await opened.enter_async_context(proxied(node.database_url or ""))
        node.database_url = url
        yield proxy


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    for name, run in (("processes", _run_processes), ("nodes", _run_nodes)):
        if name == "nodes" and dialect == "sqlite":
            continue
        place = home / name
        place.mkdir()
        yield await run(place, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("limits", arguments, __doc__, "postgresql", prove)
