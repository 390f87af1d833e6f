"""A fleet (2 redirect, 2 web, 2 workers, PostgreSQL, Redis) under load with a fault every 15
seconds: nothing lost, nothing twice.

Faults by the seed: kill -9 of a node, stop and continue, Redis restarted (it forgets everything),
PostgreSQL restarted or killed, every connection to both cut. A visitor who is cut off asks the next
node, as a front would have it; each attempt is a click of its own.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from proofs import kill
from proofs.harness import stage
from proofs.harness.fleet import Fleet, fleet
from proofs.harness.journal import Journal, Record
from proofs.harness.load import Bounds, Load, clicking, under, writing
from proofs.harness.nemesis import Fault, Nemesis
from proofs.harness.report import Report
from proofs.harness.visits import Visits
from refract.clicks.verify import Reconciliation
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

NODES = {"web": 2, "redirect": 2, "worker": 2}
ANSWERED = 0.9999


@dataclass(frozen=True, slots=True)
class Size:
    """How long, how often something breaks, and who asks meanwhile with how long a rest."""

    seconds: float
    every: float
    links: int
    visitors: int
    writers: int
    stopped: float
    click_rest: float = 0.02
    write_rest: float = 0.1


SIZES = {
    "short": Size(
        seconds=20,
        every=3.0,
        links=40,
        visitors=8,
        writers=2,
        stopped=1.5,
        click_rest=0.1,
        write_rest=0.4,
    ),
    "full": Size(seconds=600, every=15.0, links=500, visitors=32, writers=3, stopped=8.0),
}
KINDS = (
    "kill redirect",
    "kill web",
    "kill worker",
    "stop",
    "redis",
    "database",
    "cut",
    "redis killed",
    "database killed",
)


class Trouble:
    """What a seed does to a fleet.

    Every kind comes about equally often, in an order that nobody knows.
    """

    def __init__(self, made: Fleet, nemesis: Nemesis, rt: Runtime, size: Size) -> None:
        self._fleet = made
        self._nemesis = nemesis
        self._rt = rt
        self._size = size
        self._bag: list[str] = []
        self.done: Counter[str] = Counter()

    async def once(self) -> None:
        if not self._bag:
            self._bag = list(KINDS)
            self._nemesis.random.shuffle(self._bag)
        kind = self._bag.pop()
        self.done[kind] += 1
        await self._acts()[kind]()

    def _acts(self) -> dict[str, Callable[[], Awaitable[object]]]:
        nemesis, made = self._nemesis, self._fleet
        return {
            "kill redirect": lambda: self._kill("redirect"),
            "kill web": lambda: self._kill("web"),
            "kill worker": lambda: self._kill("worker"),
            "stop": self._stop,
            "redis": lambda: nemesis.restart(made.redis, hard=False),
            "redis killed": lambda: nemesis.restart(made.redis, hard=True),
            "database": lambda: nemesis.restart(made.database, hard=False),
            "database killed": lambda: nemesis.restart(made.database, hard=True),
            "cut": self._cut,
        }

    async def _kill(self, role: str) -> None:
        victim = self._nemesis.random.choice(self._fleet.sites[role])
        await self._nemesis.kill(role, victim.pid)
        await kill.revive(victim)

    async def _stop(self) -> None:
        role = self._nemesis.random.choice(list(NODES))
        victim = self._nemesis.random.choice(self._fleet.sites[role])
        await self._nemesis.pause(
            victim.pid, role, self._nemesis.random.uniform(0.5, self._size.stopped)
        )

    async def _cut(self) -> None:
        at = time.monotonic()
        for _ in range(20):
            try:
                await self._fleet.cut_connections(self._rt)
            except Unavailable:  # still coming back from the fault before
                await asyncio.sleep(0.25)
                continue
            self._nemesis.note(Fault("cut", "connections", 0, at, time.monotonic()))
            return


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    nemesis = Nemesis(seed, home / "faults.jsonl")
    chance = random.Random(seed)
    report = Report(
        f"a fleet under faults: {dialect}, Redis,"
        f" {' + '.join(f'{number} {role}' for role, number in NODES.items())}",
        seed,
    )
    with Journal(home / "requests") as journal:
        async with fleet(home, dialect, NODES) as made, made.webs[0].runtime() as rt:
            names = [link.name for link in await stage.plant(rt, size.links)]
            key = await stage.make_key(rt)
            await made.start()
            ports = [node.port for node in made.redirects]
            visits = Visits(
                ports,
                journal,
                clicking(names),
                size.visitors,
                lambda: chance.uniform(0, size.click_rest),
                chance,
            )
            bounds = Bounds(size.writers, 10_000_000, 4 * 3600.0)
            write = writing(
                key, "/api/v1/links", lambda number: {"destination": f"{kill.DESTINATION}{number}"}
            )
            writes = [
                Load(
                    node.port,
                    journal,
                    write,
                    bounds,
                    pause=lambda: chance.uniform(0, size.write_rest),
                    retry=True,
                )
                for node in made.webs
            ]
            trouble = Trouble(made, nemesis, rt, size)
            async with under(*writes), visiting(visits):
                await asyncio.sleep(2)  # everything is cached once
                await torment(trouble, size)
                await asyncio.sleep(2)
            figures = await made.drained(rt)
            for node in made.all:
                await node.stop()
            await judge(report, rt, figures, list(journal.read()), visits, trouble)
    return report


async def torment(trouble: Trouble, size: Size) -> None:
    """Something breaks at fixed intervals, for as long as the proof lasts.

    What takes longer than an interval delays the next.
    """
    began = time.monotonic()
    number = 0
    while time.monotonic() < began + size.seconds:
        await trouble.once()
        number += 1
        await asyncio.sleep(max(0.0, began + number * size.every - time.monotonic()))


async def judge(
    report: Report,
    rt: Runtime,
    figures: Reconciliation,
    records: list[Record],
    visits: Visits,
    trouble: Trouble,
) -> None:
    report.say(
        "faults", ", ".join(f"{number} {kind}" for kind, number in sorted(trouble.done.items()))
    )
    share = visits.answered / max(1, visits.made)
    report.bar(
        "visits answered",
        f"{share:.4%} of {visits.made:,}",
        f"≥ {ANSWERED:.2%}",
        held=share >= ANSWERED,
        timed=True,
    )
    for sentence in visits.unanswered[:5]:
        report.note(f"unanswered {sentence}")
    await kill.judge_data(report, rt, figures, records)


class visiting:  # noqa: N801 - reads as a verb where it is used
    """Visits for as long as the block runs."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._visits.run())

    async def __aexit__(self, *_: object) -> None:
        self._visits.stop()
        await self._task


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("fleet", arguments, __doc__, "postgresql", prove)
