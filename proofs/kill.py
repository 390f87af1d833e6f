"""kill -9 under load, 200 times over servers and ingester: no acknowledged write lost, no click lost, none counted twice.

A kill is *mid-request* when it cut somebody off: a request sent before it and ended by it without an answer. A site whose parent
died, or that runs alone, is started again at once, as a service manager would; the parent looks after its own processes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from proofs.harness import checker, stage
from proofs.harness.journal import Journal, Kind, Record
from proofs.harness.load import Bounds, Load, clicking, writing
from proofs.harness.nemesis import Nemesis
from proofs.harness.report import Report
from proofs.harness.site import NotServing, Site, site
from refract.core.runtime import Runtime

DESTINATION = "https://example.com/written/"
RECOVERY = 2.0


@dataclass(frozen=True, slots=True)
class Size:
    """How many kills of a server that runs alone, and of one with several processes."""

    alone: int
    together: int
    workers: int = 4
    links: int = 500
    seconds: float = 2 * 3600.0


SIZES = {"short": Size(alone=2, together=4, workers=2, links=50), "full": Size(alone=50, together=150)}
Strike = Callable[[Site, Nemesis], Awaitable[None]]


async def strike_alone(made: Site, nemesis: Nemesis) -> None:
    """The only process dies, and is started again."""
    await nemesis.kill("server", made.pid)
    await revive(made)


async def strike_together(made: Site, nemesis: Nemesis) -> None:
    """Some process dies: mostly a server, often the one that ingests, sometimes all of them with their parent."""
    chance = nemesis.random.random()
    ingester = made.ingester()
    serving = made.holding() or made.listening()
    if chance < 0.1:
        await nemesis.kill("all at once", made.pid, *made.servers())
        await revive(made)
    elif chance < 0.4 and ingester in serving:
        await nemesis.kill("ingester", ingester)
    else:
        await nemesis.kill("server", nemesis.random.choice(serving))


async def revive(made: Site) -> None:
    """What a service manager does. The address may be taken for a moment more, while orphans close it."""
    await asyncio.to_thread(made.buried)
    for _ in range(10):
        made.start()
        try:
            await made.until_serving()
        except NotServing:
            if made.alive:
                raise
            continue
        return
    raise NotServing(f"did not come back:\n{made.log[-3000:]}")


async def torment(made: Site, nemesis: Nemesis, strike: Strike, kills: int) -> list[float]:
    """Kill so many times; the answer is how long it took each time until all processes were there again."""
    waits = []
    while len(nemesis.faults) < kills:
        await nemesis.wait(0.2, 1.2)
        if not made.listening():
            continue
        began = time.monotonic()
        await strike(made, nemesis)
        if nemesis.random.random() < 0.8 or len(nemesis.faults) == kills:  # else the next blow falls while it is still recovering
            await made.until_complete()
            waits.append(time.monotonic() - began)
    return waits


async def run(home: Path, dialect: str, kills: int, workers: int, size: Size, seed: int) -> Report:
    nemesis, journal = Nemesis(seed, home / "faults.jsonl"), Journal(home / "requests")
    async with site(home, dialect, workers=workers) as made, made.runtime() as rt:
        names = [link.name for link in await stage.plant(rt, size.links)]
        key = await stage.make_key(rt)
        made.start()
        await made.until_complete()
        write = writing(key, "/api/v1/links", lambda number: {"destination": f"{DESTINATION}{number}"})
        most = Bounds(48, 20_000_000, size.seconds)
        loads = [
            Load(made.port, journal, clicking(names), most, stay=lambda: nemesis.random.randint(5, 50)),
            Load(made.port, journal, write, most._replace(connections=3), pause=lambda: nemesis.random.uniform(0, 0.05), retry=True),
        ]
        tasks = [asyncio.create_task(load.run()) for load in loads]
        waits = await torment(made, nemesis, strike_alone if workers == 1 else strike_together, kills)
        await asyncio.sleep(0.5)
        for load in loads:
            load.stop()
        await asyncio.gather(*tasks)
        where = f"{dialect}, {'one process' if workers == 1 else f'{workers} processes'}"
        report = Report(f"kill -9 under load: {where}", seed)
        await judge(report, rt, made, nemesis, list(journal.read()), waits)
    journal.close()
    nemesis.close()
    return report


async def judge(report: Report, rt: Runtime, made: Site, nemesis: Nemesis, records: list[Record], waits: list[float]) -> None:
    figures = await checker.drained(rt)
    await made.stop()
    kills = len(nemesis.faults)
    victims = [fault.victim for fault in nemesis.faults]
    report.say("kills", " + ".join(f"{victims.count(name)} {name}" for name in sorted(set(victims))))
    share = checker.mid_request(nemesis.faults, records) / kills
    report.bar("of them mid-request", f"{share:.1%}", "≥ 95 %", held=share >= 0.95)
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
    report.none("figures that do not add up", len(figures.drift) + figures.not_kept)
    report.notes += figures.drift
    if rt.db.dialect == "sqlite":
        async with rt.db.read() as session:
            verdict = await session.scalar(text("PRAGMA integrity_check"))
        report.bar("integrity of the database file", verdict, "ok", held=verdict == "ok")
    again = checker.serving_again(nemesis.faults, records)
    report.bar("serving again", checker.spread(again), f"≤ {RECOVERY:g} s", held=max(again) <= RECOVERY, timed=True)
    report.say("all processes back", checker.spread(waits))


async def prove(home: Path, dialect: str, size: str, seed: int) -> list[Report]:
    chosen, reports = SIZES[size], []
    for number, (kills, workers) in enumerate(((chosen.together, chosen.workers), (chosen.alone, 1))):
        place = home / str(number)
        place.mkdir()
        reports.append(await run(place, dialect, kills, workers, chosen, seed))
    return reports


def main(arguments: list[str]) -> int:
    return stage.main("kill", arguments, __doc__, "sqlite,postgresql", prove)
