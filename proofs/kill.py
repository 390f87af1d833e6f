"""kill -9 under load, over 200 times, of servers, ingester, each role and the database.

Nothing acknowledged lost, no click counted twice.

Clicks are counted per link and per day, in events, totals and roll-ups, while hours are closed as
often as the clock allows.

A kill is *mid-request* when it cut somebody off: a request sent before it and ended by it without
an answer. A site whose parent died, or that runs alone, is started again at once, as a service
manager would; the parent looks after its own processes.
"""

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import text

from proofs.harness import checker, proc, stage
from proofs.harness.journal import Journal, Kind, Record
from proofs.harness.load import Bounds, Load, clicking, under, writing
from proofs.harness.nemesis import Fault, Nemesis
from proofs.harness.report import Report
from proofs.harness.site import NotServing, Site, database, site
from refract.clicks.verify import Reconciliation
from refract.core.runtime import Runtime
from tools.servers import KINDS, Server, free_port

DESTINATION = "https://example.com/written/"
RECOVERY = 2.0
INGESTER = "ingester"
"""The victim that stores clicks, while others redirect."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many kills of a server that runs alone, of one with several processes, and of one whose
    roles are processes of their own; how long clients rest at most between two requests.
    """

    alone: int
    together: int
    roles: int
    restarts: int = 0
    workers: int = 4
    links: int = 500
    connections: int = 48
    click_rest: float = 0.0
    write_rest: float = 0.05
    seconds: float = 2 * 3600.0


SIZES = {
    "short": Size(
        alone=1,
        together=3,
        roles=0,
        restarts=2,
        workers=2,
        links=50,
        connections=16,
        click_rest=0.05,
        write_rest=0.2,
    ),
    "full": Size(alone=40, together=120, roles=60, restarts=20),
}
Strike = Callable[[Site, Nemesis], Awaitable[None]]


async def strike_alone(made: Site, nemesis: Nemesis) -> None:
    """The only server dies with everything beside it, and is started again."""
    await nemesis.kill("server", *made.family())
    nemesis.costs.append(await revive(made))


async def strike_together(made: Site, nemesis: Nemesis) -> None:
    """Some process dies: mostly a server, often the one that ingests, sometimes all of them."""
    chance = nemesis.random.random()
    ingester = made.ingester()
    serving = made.holding() or made.listening()
    if chance < 0.1:
        await nemesis.kill("all at once", *made.family())
        await revive(made)
    elif chance < 0.4 and ingester is not None:
        await nemesis.kill(INGESTER, ingester)
    else:
        await nemesis.kill("server", nemesis.random.choice(serving))


async def revive(made: Site) -> float:
    """What a service manager does.

    The address may be taken for a moment more, while orphans close it. The answer is CPU seconds.
    """
    await asyncio.to_thread(made.buried)
    for _ in range(10):
        made.start()
        try:
            await made.until_serving()
        except NotServing:
            if made.alive:
                raise
            continue
        return sum(map(proc.cpu_seconds, made.family()))
    raise NotServing(f"did not come back:\n{made.log[-3000:]}")


async def torment(made: Site, nemesis: Nemesis, strike: Strike, kills: int) -> list[float]:
    """Kill so many times; the answer is how long it took each time until all processes were there
    again.
    """
    waits = []
    while len(nemesis.faults) < kills:
        await nemesis.wait(0.2, 1.2)
        if not made.listening():
            continue
        began = time.monotonic()
        await strike(made, nemesis)
        if (
            nemesis.random.random() < 0.8 or len(nemesis.faults) == kills
        ):  # else the next blow falls while it is still recovering
            await made.until_complete()
            waits.append(time.monotonic() - began)
    return waits


async def run(home: Path, dialect: str, kills: int, workers: int, size: Size, seed: int) -> Report:
    nemesis = Nemesis(seed, home / "faults.jsonl")
    where = f"{dialect}, {'one process' if workers == 1 else f'{workers} processes'}"
    report = Report(f"kill -9 under load: {where}", seed)
    with Journal(home / "requests") as journal:
        async with site(home, dialect, workers=workers) as made, made.runtime() as rt:
            ground = await prepared(rt, size)
            made.start()
            await made.until_complete()
            async with under(*loads(made.port, journal, ground, size, nemesis.random)):
                waits = await torment(
                    made, nemesis, strike_alone if workers == 1 else strike_together, kills
                )
                await asyncio.sleep(0.5)
            figures = await checker.drained(rt)
            await made.stop()
            records = list(journal.read())
            beside = [fault for fault in nemesis.faults if fault.victim == INGESTER]
            judge_kills(report, [fault for fault in nemesis.faults if fault not in beside], records)
            report.say("kills of the process that ingests", len(beside))
            await judge_data(report, rt, figures, records)
            report.say("all processes back", checker.spread(waits))
            report.say(
                "CPU to serve again, where the whole site died", checker.spread(nemesis.costs)
            )
    return report


async def run_roles(home: Path, dialect: str, size: Size, seed: int) -> Report:
    """One process redirects, one has the pages and the API, one works in the background.

    Each dies under the load that is its own.

    They share one machine here: while the pages' process dies, visitors rest between two clicks, or
    they would have it to themselves.
    """
    nemesis = Nemesis(seed, home / "faults.jsonl")
    report = Report(f"kill -9 under load: {dialect}, each role a process", seed)
    with Journal(home / "requests") as journal:
        async with (
            database(dialect) as url,
            site(home, dialect, url=url, REFRACT_ROLE="web") as web,
            site(home, dialect, url=url, REFRACT_ROLE="redirect") as redirect,
            site(home, dialect, url=url, REFRACT_ROLE="worker") as worker,
            web.runtime() as rt,
        ):
            ground = await prepared(rt, size)
            roles = {"web": web, "redirect": redirect, "worker": worker}
            for one in roles.values():
                one.start()
                await one.until_serving()
            for victims, rest in ((("redirect", "worker"), 0.0), (("web", "worker"), 0.25)):
                click, _ = loads(redirect.port, journal, ground, size, nemesis.random, rest=rest)
                _, write = loads(web.port, journal, ground, size, nemesis.random, writers=4)
                enough = len(nemesis.faults) + size.roles // 2
                async with under(click, write):
                    while len(nemesis.faults) < enough:
                        await nemesis.wait(0.2, 1.2)
                        role = nemesis.random.choice(victims)
                        await nemesis.kill(role, roles[role].pid)
                        nemesis.costs.append(await revive(roles[role]))
                    await asyncio.sleep(0.5)
            figures = await checker.drained(rt)
            for one in roles.values():
                await one.stop()
            records = list(journal.read())
            for role, kind in (("redirect", Kind.CLICK), ("web", Kind.WRITE)):
                those = [fault for fault in nemesis.faults if fault.victim == role]
                judge_kills(
                    report, those, [record for record in records if record.kind == kind], role
                )
            idle = [fault for fault in nemesis.faults if fault.victim == "worker"]
            report.say(
                "worker: kills",
                f"{len(idle)}, {sum(fault.busy for fault in idle)} of them while it was running",
            )
            report.say("CPU to serve again", checker.spread(nemesis.costs))
            await judge_data(report, rt, figures, records)
    return report


async def run_restarts(home: Path, dialect: str, size: Size, seed: int) -> Report:
    """The database goes and comes back, in good order or killed, and now and then the process that
    is ingesting dies as well.
    """
    nemesis = Nemesis(seed, home / "faults.jsonl")
    report = Report(f"the database restarted under load: {dialect}", seed)
    with Journal(home / "requests") as journal, own_server(dialect) as server:
        async with (
            site(home, dialect, workers=size.workers, url=server.url) as made,
            made.runtime() as rt,
        ):
            ground = await prepared(rt, size)
            made.start()
            await made.until_complete()
            click, _ = loads(made.port, journal, ground, size, nemesis.random)
            async with under(click):
                for number in range(size.restarts):
                    await nemesis.wait(0.5, 1.5)
                    if number % 2 and (ingester := made.ingester()):
                        await nemesis.kill("ingester", ingester)
                    await nemesis.restart(server, hard=number % 2 == 0)
                    await made.until_complete()
                await asyncio.sleep(0.5)
            figures = await checker.drained(rt)
            await made.stop()
            victims = Counter(fault.victim for fault in nemesis.faults)
            report.say(
                "blows", " + ".join(f"{number} {name}" for name, number in sorted(victims.items()))
            )
            await judge_data(report, rt, figures, list(journal.read()))
    return report


@contextmanager
def own_server(dialect: str) -> Iterator[Server]:
    """A database server of this proof's own: the one that others use is not for breaking."""
    with tempfile.TemporaryDirectory(prefix="refract-proof-") as base:
        Path(base).chmod(0o711)  # the server is another user, and must reach its own folder
        server = KINDS[dialect](Path(base), free_port())
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.discard()


class Ground(NamedTuple):
    """What the loads ask for: names of links, and a key that may make more."""

    names: list[str]
    key: str


async def prepared(rt: Runtime, size: Size) -> Ground:
    return Ground(
        [link.name for link in await stage.plant(rt, size.links)], await stage.make_key(rt)
    )


def loads(
    port: int,
    journal: Journal,
    ground: Ground,
    size: Size,
    chance: random.Random,
    *,
    writers: int = 3,
    rest: float = 0.0,
) -> tuple[Load, Load]:
    """Clicks on connections that come and go, so that every process has some.

    Writes that are tried again until they are acknowledged.
    """
    most = Bounds(size.connections, 20_000_000, size.seconds)
    rest = max(rest, size.click_rest)
    write = writing(
        ground.key, "/api/v1/links", lambda number: {"destination": f"{DESTINATION}{number}"}
    )
    return (
        Load(
            port,
            journal,
            clicking(ground.names),
            most,
            stay=lambda: chance.randint(5, 50),
            pause=(lambda: chance.uniform(0, rest)) if rest else None,
        ),
        Load(
            port,
            journal,
            write,
            most._replace(connections=writers),
            pause=lambda: chance.uniform(0, size.write_rest),
            retry=True,
        ),
    )


def judge_kills(
    report: Report, faults: Sequence[Fault], records: list[Record], role: str = ""
) -> None:
    """What the kills did to those who were served meanwhile."""
    if not faults:
        return
    prefix = f"{role}: " if role else ""
    victims = Counter(fault.victim for fault in faults)
    report.say(
        f"{prefix}kills", " + ".join(f"{number} {name}" for name, number in sorted(victims.items()))
    )
    share = checker.mid_request(faults, records) / len(faults)
    report.bar(
        f"{prefix}of them mid-request", f"{share:.1%}", "≥ 95 %", held=share >= 0.95, timed=True
    )
    again = checker.serving_again(faults, records)
    report.bar(
        f"{prefix}serving again",
        checker.spread(again),
        f"≤ {RECOVERY:g} s",
        held=max(again) <= RECOVERY,
        timed=True,
    )


async def judge_data(
    report: Report, rt: Runtime, figures: Reconciliation, records: list[Record]
) -> None:
    """What is in the database, once everything is drained."""
    clicks = checker.tally(records, Kind.CLICK, await checker.stored_clicks(rt))
    writes = checker.tally(records, Kind.WRITE, await checker.stored_links(rt, DESTINATION))
    for what, found in (("clicks", clicks), ("writes", writes)):
        report.say(f"{what}: acknowledged", found.acknowledged)
        report.say(f"{what}: stored, answer not received", found.in_flight)
        report.none(f"{what}: lost", found.lost)
        report.none(f"{what}: duplicate", found.duplicates)
        report.none(f"{what}: unexplained", found.unexplained)
        if found.examples:
            report.note(f"{what} to look at: {found.examples}")
    report.none("links whose total is not their clicks", await checker.totals_that_differ(rt))
    report.none(
        "links and days whose roll-ups are not their clicks", await checker.rollups_that_differ(rt)
    )
    report.none("figures that do not add up", len(figures.drift) + figures.not_kept)
    report.notes += figures.drift
    if rt.db.dialect == "sqlite":
        async with rt.db.read() as session:
            verdict = await session.scalar(text("PRAGMA integrity_check"))
        report.bar("integrity of the database file", verdict, "ok", held=verdict == "ok")


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    chosen = SIZES[size]
    for number, (kills, workers) in enumerate(
        ((chosen.together, chosen.workers), (chosen.alone, 1))
    ):
        place = home / str(number)
        place.mkdir()
        yield await run(place, dialect, kills, workers, chosen, seed)
    if chosen.roles:
        place = home / "roles"
        place.mkdir()
        yield await run_roles(place, dialect, chosen, seed)
    if chosen.restarts and dialect != "sqlite":
        place = home / "restarts"
        place.mkdir()
        yield await run_restarts(place, dialect, chosen, seed)


def main(arguments: list[str]) -> int:
    return stage.main("kill", arguments, __doc__, "sqlite,postgresql", prove)
