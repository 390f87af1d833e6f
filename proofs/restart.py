"""100 restarts under load, 0 failed requests.

Processes replaced by their parent, and instances behind nginx restarted in turn.

The client never tries a request twice. A connection that is closed while nothing was asked on it is
opened again; everything else that is not the expected answer is a failed request.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGHUP

from proofs.harness import stage
from proofs.harness.journal import Journal, Kind, Outcome
from proofs.harness.load import Bounds, Load, clicking, under, writing
from proofs.harness.nemesis import Nemesis
from proofs.harness.nginx import nginx
from proofs.harness.report import Report
from proofs.harness.site import NotServing, Site, database, site

DESTINATION = "https://example.com/written/"


@dataclass(frozen=True, slots=True)
class Size:
    """How often.

    A replacement is one SIGHUP, answered by the parent with a new process for each old one.
    Busy clients rest at most so many seconds between two requests.
    """

    replacements: int
    restarts: int
    links: int = 200
    click_rest: float = 0.01
    write_rest: float = 0.1
    seconds: float = 3600.0


SIZES = {
    "short": Size(replacements=1, restarts=1, click_rest=0.1, write_rest=0.4),
    "full": Size(replacements=50, restarts=50),
}


def loads(
    port: int, journal: Journal, names: list[str], key: str, size: Size, chance: random.Random
) -> list[Load]:
    """Busy connections, connections that rest between requests, and some that write."""
    most = Bounds(16, 5_000_000, size.seconds)
    write = writing(key, "/api/v1/links", lambda number: {"destination": f"{DESTINATION}{number}"})
    return [
        Load(
            port, journal, clicking(names), most, pause=lambda: chance.uniform(0, size.click_rest)
        ),
        Load(
            port,
            journal,
            clicking(names),
            most._replace(connections=16),
            pause=lambda: chance.uniform(0, 3),
        ),
        Load(
            port,
            journal,
            write,
            most._replace(connections=2),
            pause=lambda: chance.uniform(0, size.write_rest),
        ),
    ]


async def replaced(made: Site, nemesis: Nemesis) -> float:
    """One SIGHUP, until none of the old processes is left and all new ones accept connections."""
    old = set(made.servers())
    began = nemesis.send(made.pid, SIGHUP, "parent")
    deadline = began + 120
    while old & set(made.servers()) or not made.is_complete():
        if time.monotonic() > deadline:
            raise NotServing(f"not replaced after 120 s:\n{made.log[-3000:]}")
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def by_the_parent(home: Path, dialect: str, size: Size, seed: int) -> Report:
    """Two server processes behind one socket."""
    nemesis, took = Nemesis(seed, home / "faults.jsonl"), []
    with Journal(home / "requests") as journal:
        async with site(home, dialect, workers=2) as made:
            async with made.runtime() as rt:
                names = [link.name for link in await stage.plant(rt, size.links)]
                key = await stage.make_key(rt)
            made.start()
            await made.until_complete()
            async with under(*loads(made.port, journal, names, key, size, nemesis.random)):
                for _ in range(size.replacements):
                    await nemesis.wait(0.2, 1.0)
                    took.append(await replaced(made, nemesis))
            await made.stop()
        return judge(
            f"restart: 2 processes replaced by their parent, {dialect}",
            seed,
            journal,
            size.replacements * 2,
            took,
        )


async def behind_nginx(home: Path, dialect: str, size: Size, seed: int) -> Report:
    """Two instances on one database, stopped and started in turn."""
    nemesis = Nemesis(seed, home / "faults.jsonl")
    with Journal(home / "requests") as journal:
        async with (
            database(dialect) as url,
            site(home, dialect, url=url) as first,
            site(home, dialect, url=url) as second,
        ):
            async with first.runtime() as rt:
                names = [link.name for link in await stage.plant(rt, size.links)]
                key = await stage.make_key(rt)
            for made in (first, second):
                made.start()
                await made.until_serving()
            with nginx(home, [first.port, second.port]) as port:
                async with under(*loads(port, journal, names, key, size, nemesis.random)):
                    took = [
                        await restarted((first, second)[turn % 2], nemesis)
                        for turn in range(size.restarts)
                    ]
            await first.stop()
            await second.stop()
        return judge(
            f"restart: 2 instances behind nginx in turn, {dialect}",
            seed,
            journal,
            size.restarts,
            took,
        )


async def restarted(made: Site, nemesis: Nemesis) -> float:
    await nemesis.wait(0.2, 1.0)
    began = time.monotonic()
    await made.stop()
    made.start()
    await made.until_serving()
    return time.monotonic() - began


def judge(title: str, seed: int, journal: Journal, restarts: int, took: list[float]) -> Report:
    report = Report(title, seed)
    outcomes: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for record in journal.read():
        expected = record.acknowledged or (
            record.kind == Kind.OTHER and record.outcome == Outcome.ANSWERED
        )
        if expected:
            answered[Kind(record.kind).name] += 1
        else:
            outcomes[
                Outcome(record.outcome).name + (f" {record.status}" if record.status else "")
            ] += 1
    report.say("processes or instances restarted", restarts)
    report.say("seconds each round took", f"{min(took):.1f}–{max(took):.1f}")
    report.say("redirects received", answered["CLICK"])
    report.say("writes acknowledged", answered["WRITE"])
    report.none("failed requests", outcomes.total())
    if outcomes:
        report.note(f"failed: {dict(outcomes)}")
    return report


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    for part in (by_the_parent, behind_nginx):
        place = home / part.__name__
        place.mkdir()
        yield await part(place, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("restart", arguments, __doc__, "sqlite,postgresql", prove)
