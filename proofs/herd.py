"""10,000 at once ask for a name that nobody has asked for before.

At most one query per process, and everybody is answered.

The processes sleep (SIGSTOP) while the crowd asks, so that all of it is there when they wake. Then
the link is edited, which makes every process forget it, and the crowd asks again.
"""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from proofs.harness import checker, stage
from proofs.harness.crowd import Crowd, Member
from proofs.harness.ears import Ear, ears, metric
from proofs.harness.report import Report
from proofs.harness.site import Site, site
from proofs.harness.wire import get, request
from refract.core.runtime import Runtime

TRIES = 5
LONGEST_SLEEP = 0.8
SCANS = (
    "SELECT COALESCE(seq_scan, 0) + COALESCE(idx_scan, 0) FROM pg_stat_user_tables WHERE relname ="
    " 'names'"
)


@dataclass(frozen=True, slots=True)
class Size:
    people: int
    workers: int = 4
    seconds: float = 120.0
    witness_seconds: float = 12.0


SIZES = {"short": Size(people=1000, workers=2, witness_seconds=0.0), "full": Size(people=10_000)}


@dataclass(slots=True)
class Round:
    """What one crowd saw and cost."""

    statuses: Counter[int]
    locations: set[bytes]
    asked: dict[int, int]
    queries: dict[int, int]
    searched: int
    asleep: float


def answered(member: Member) -> bool:
    return b"\r\n\r\n" in member.received


async def queries_of(listeners: list[Ear]) -> dict[int, int]:
    return {
        ear.pid: int(await metric(ear, "refract_lookups_total", 'tier="database"'))
        for ear in listeners
    }


async def crowd_asks(
    made: Site, rt: Runtime, listeners: list[Ear], name: str, first: int, size: Size
) -> Round:
    """Open, send the processes to sleep, ask, wake them, listen."""
    before, searched = await queries_of(listeners), await scans(rt, size)
    crowd, servers = Crowd(made.port), made.listening()
    words = [get(f"/{name}?utm_content={first + number}") for number in range(size.people)]
    try:
        await asyncio.to_thread(crowd.open, size.people)
        began = time.monotonic()
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        try:
            crowd.tell(words)
        finally:
            for pid in servers:
                os.kill(pid, signal.SIGCONT)
        asleep = time.monotonic() - began
        await asyncio.to_thread(crowd.listen, size.seconds, enough=answered)
        holders = Counter(made.connected().values())
    finally:
        crowd.close()
    after = await queries_of(listeners)
    heads = [member.received.split(b"\r\n\r\n")[0] for member in crowd.members]
    statuses = Counter(int(head[9:12]) if head else 0 for head in heads)
    locations = {
        line
        for head in set(heads)
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"location:")
    }
    queries = {pid: after[pid] - before[pid] for pid in after}
    return Round(
        statuses, locations, dict(holders), queries, await scans(rt, size) - searched, asleep
    )


async def until_short_sleep(
    made: Site, rt: Runtime, listeners: list[Ear], names: list[str], first: int, size: Size
) -> tuple[Round, int]:
    """A process that slept for a second has lost touch with the others, and rightly asks again.

    Then another crowd tries its luck.

    The answer is the round that counts, and how many clicks there were in all.
    """
    one = await crowd_asks(made, rt, listeners, names[0], first, size)
    turn = 1
    while one.asleep >= LONGEST_SLEEP and turn < len(names):
        one = await crowd_asks(made, rt, listeners, names[turn], first + turn * size.people, size)
        turn += 1
    return one, turn * size.people


async def scans(rt: Runtime, size: Size) -> int:
    """How often PostgreSQL itself says that the table of names was searched.

    An idle backend may keep that to itself for 10 s.
    """
    if rt.db.dialect != "postgresql":
        return 0
    await asyncio.sleep(size.witness_seconds)
    async with rt.db.read() as session:
        return int(await session.scalar(text(SCANS)) or 0)


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    report = Report(f"herd: {size.people:,} at once, {dialect}, {size.workers} processes", seed)
    async with (
        site(home, dialect, workers=size.workers, REFRACT_BACKGROUND="inline") as made,
        made.runtime() as rt,
    ):
        links = await stage.plant(rt, TRIES, prefix="hot")
        names = [link.name for link in links]
        key = await stage.make_key(rt)
        made.start()
        await made.until_complete()
        async with ears(made, 1) as found:
            listeners = [group[0] for group in found.values()]
            cold, clicks = await until_short_sleep(made, rt, listeners, names, 1, size)
            for link in links:
                change = json.dumps({"destination": f"{link.destination}/edited"}).encode()
                edited = await listeners[0].ask(
                    request("PATCH", f"/api/v1/links/{link.id}", change, f"x-api-key: {key}")
                )
                assert edited.status == 200, edited
            await asyncio.sleep(2)
            again, more = await until_short_sleep(made, rt, listeners, names, 1 + clicks, size)
        await checker.drained(rt)
        stored = await checker.stored_clicks(rt)
        await made.stop()
    for what, one in (("cold", cold), ("after an edit", again)):
        tell(report, what, one, size)
        if dialect == "postgresql" and size.witness_seconds:
            held = one.searched <= size.workers
            report.bar(
                f"{what}: searches for names, as PostgreSQL counts",
                one.searched,
                f"≤ {size.workers}",
                held=held,
            )
    report.bar(
        "clicks stored, each once",
        stored.total(),
        f"{clicks + more:,}",
        held=stored.total() == len(stored) == clicks + more,
    )
    return report


def tell(report: Report, what: str, one: Round, size: Size) -> None:
    report.bar(
        f"{what}: seconds asleep",
        f"{one.asleep:.3f}",
        f"< {LONGEST_SLEEP:g}",
        held=one.asleep < LONGEST_SLEEP,
        timed=True,
    )
    report.say(
        f"{what}: connected, by process", " + ".join(str(number) for number in one.asked.values())
    )
    report.bar(
        f"{what}: redirected",
        one.statuses[302],
        f"{size.people:,}",
        held=one.statuses[302] == size.people,
    )
    report.bar(f"{what}: different answers", len(one.locations), "1", held=len(one.locations) == 1)
    most = max(one.queries.values())
    report.bar(
        f"{what}: queries, by process",
        " + ".join(map(str, one.queries.values())),
        "≤ 1 each",
        held=most <= 1,
    )
    if set(one.statuses) != {302}:
        report.note(f"{what}: {dict(one.statuses)}")


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("herd", arguments, __doc__, "sqlite,postgresql", prove)
