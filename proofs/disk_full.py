"""Full disks, under the spool, under the database and under both.

Redirects go on, nothing acknowledged is lost, health says so.

What found no room in the spool is counted and named: clicks received = stored + not kept, to the
last one. Nothing else may be missing, and nothing that a client was told is done.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text

from proofs.harness import checker, disk, stage
from proofs.harness.disk import SmallDisk
from proofs.harness.journal import Journal, Kind, Outcome, Record
from proofs.harness.load import Bounds, Load, clicking, under, writing
from proofs.harness.report import Report
from proofs.harness.site import Site, site
from proofs.harness.wire import Wire, get
from refract.core.runtime import Runtime

DESTINATION = "https://example.com/written/"
LONGEST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Size:
    """How often the disk is filled, and for how many seconds."""

    rounds: int
    full_seconds: float
    layouts: tuple[str, ...] = ("spool", "database", "both")
    bytes: int = 200 << 20
    workers: int = 2
    seconds: float = 1800.0


SIZES = {
    "short": Size(rounds=1, full_seconds=1.0, workers=1, layouts=("both",)),
    "full": Size(rounds=10, full_seconds=5.0),
}


@dataclass(slots=True)
class Watch:
    """What was seen while the disk was full, and once it no longer was."""

    windows: list[tuple[float, float]] = field(default_factory=list)
    killed: tuple[float, float] = (0.0, 0.0)
    ready_when_full: list[str] = field(default_factory=list)
    ready_again: list[float] = field(default_factory=list)


async def ask(made: Site, path: str) -> tuple[int, dict[str, object]]:
    wire = await Wire.open(made.port)
    try:
        answer = await wire.ask(get(path))
        return answer.status, json.loads(answer.body)
    finally:
        wire.close()


def loads(
    port: int, journal: Journal, names: list[str], key: str, size: Size, chance: random.Random
) -> list[Load]:
    """Clicks and writes. Writes are not repeated: what was refused is refused."""
    most = Bounds(4, 5_000_000, size.seconds)
    write = writing(key, "/api/v1/links", lambda number: {"destination": f"{DESTINATION}{number}"})
    return [
        Load(port, journal, clicking(names), most, pause=lambda: chance.uniform(0, 0.01)),
        Load(
            port,
            journal,
            write,
            most._replace(connections=2),
            pause=lambda: chance.uniform(0, 0.05),
        ),
    ]


async def fill(made: Site, small: SmallDisk, size: Size, watch: Watch) -> None:
    """Fill the disk for a while, and wait until the site says that it is well again."""
    began = time.monotonic()
    async with small.full():
        await asyncio.sleep(size.full_seconds)
        status, said = await ask(made, "/ready")
        watch.ready_when_full.append(f"{status} {said['status']}")
    freed = time.monotonic()
    # Another process sends no event.
    while (await ask(made, "/ready"))[0] != 200 and time.monotonic() < freed + 30:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    watch.ready_again.append(time.monotonic() - freed)
    watch.windows.append((began, freed + 1.0))


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies on the small disk."""

    title: str
    spool: bool
    database: bool


LAYOUTS = {
    "spool": Layout("under the spool", spool=True, database=False),
    "database": Layout("under the database", spool=False, database=True),
    "both": Layout("under both, and killed while full", spool=True, database=True),
}


async def run(home: Path, dialect: str, layout: Layout, size: Size, seed: int) -> Report:
    chance, watch = random.Random(seed), Watch()
    small = SmallDisk(home / "small", size.bytes)
    spool = (small.path if layout.spool else home) / "spool"
    place = small.path if layout.database else home
    report = Report(f"disk full: {layout.title}, {dialect}", seed)
    environment = {"REFRACT_SPOOL_DIR": str(spool), "REFRACT_SPOOL_SEGMENT_BYTES": "65536"}
    try:
        with Journal(home / "requests") as journal:
            async with (
                site(place, dialect, workers=size.workers, **environment) as made,
                made.runtime() as rt,
            ):
                names = [link.name for link in await stage.plant(rt, 100)]
                key = await stage.make_key(rt)
                made.start()
                await made.until_complete()
                async with under(*loads(made.port, journal, names, key, size, chance)):
                    await torment(made, small, layout, size, watch)
                await judge(report, rt, made, list(journal.read()), watch)
    finally:
        small.unmount()
    return report


async def torment(made: Site, small: SmallDisk, layout: Layout, size: Size, watch: Watch) -> None:
    await asyncio.sleep(1)
    for _ in range(size.rounds):
        await fill(made, small, size, watch)
        await asyncio.sleep(1)
    if layout.spool and layout.database:
        await killed_while_full(made, small, watch)
        await asyncio.sleep(1)


async def killed_while_full(made: Site, small: SmallDisk, watch: Watch) -> None:
    began = time.monotonic()
    async with small.full():
        await asyncio.sleep(1)
        made.kill_all()
    made.start()
    await made.until_complete()
    watch.killed = (began, time.monotonic() + 1.0)
    watch.windows.append(watch.killed)


async def judge(
    report: Report, rt: Runtime, made: Site, records: list[Record], watch: Watch
) -> None:
    figures = await checker.drained(rt)
    await made.stop()
    verify = made.refract("verify")
    report.say("times full", len(watch.windows))
    judge_clicks(report, records, await checker.stored_clicks(rt), figures.not_kept, watch)
    judge_writes(report, records, await checker.stored_links(rt, DESTINATION), watch)
    report.bar(
        "ready while full",
        ", ".join(sorted(set(watch.ready_when_full))),
        "503 degraded",
        held=_all(watch.ready_when_full, "503 degraded"),
    )
    report.bar(
        "ready again after",
        checker.spread(watch.ready_again),
        "≤ 5 s",
        held=max(watch.ready_again) <= 5.0,
        timed=True,
    )
    report.none("figures that do not add up", len(figures.drift))
    tracebacks = [line for line in made.log.splitlines() if "Traceback" in line]
    report.none("tracebacks in the log", len(tracebacks))
    for line in tracebacks[:3]:
        report.note(f"{line[:200]} … {line[-600:]}")
    told = "accounted for" in verify.stdout and f"{figures.not_kept:,}" in verify.stdout
    report.bar(
        "refract verify",
        f"exit {verify.returncode}",
        "exit 0, names them",
        held=verify.returncode == 0 and told,
    )
    report.notes += [line.strip() for line in verify.stdout.splitlines()] if not told else []
    if rt.db.dialect == "sqlite":
        async with rt.db.read() as session:
            verdict = await session.scalar(text("PRAGMA integrity_check"))
        report.bar("integrity of the database file", verdict, "ok", held=verdict == "ok")


def _all(seen: list[str], word: str) -> bool:
    return bool(seen) and all(one.startswith(word) for one in seen)


def judge_clicks(
    report: Report, records: list[Record], stored: Counter[int], not_kept: int, watch: Watch
) -> None:
    clicks = [record for record in records if record.kind == Kind.CLICK]
    killed = [record for record in clicks if record.outcome != Outcome.ANSWERED]
    acknowledged = {record.id: record for record in clicks if record.acknowledged}
    missing = [record for number, record in acknowledged.items() if number not in stored]
    outside = [
        record
        for record in missing
        if not any(begin <= record.ended and record.began <= end for begin, end in watch.windows)
    ]
    report.say("clicks: redirects received", len(acknowledged))
    report.none("clicks: answered otherwise", len(clicks) - len(acknowledged) - len(killed))
    report.say("clicks: cut off by the kill", len(killed))
    report.say("clicks: not kept, by the spool's own count", not_kept)
    # A killed process may have counted clicks whose redirect it could not send any more.
    report.bar(
        "clicks: missing",
        len(missing),
        "= not kept",
        held=len(missing) <= not_kept <= len(missing) + len(killed),
    )
    report.none("clicks: missing though the disk had room", len(outside))
    report.none("clicks: duplicate", sum(times > 1 for times in stored.values()))
    odd = Counter(
        record.status
        for record in clicks
        if record.outcome == Outcome.ANSWERED and not record.acknowledged
    )
    if odd:
        report.note(f"clicks answered otherwise: {dict(odd)}")


def judge_writes(report: Report, records: list[Record], stored: Counter[int], watch: Watch) -> None:
    writes = [record for record in records if record.kind == Kind.WRITE]
    found = checker.tally(writes, Kind.WRITE, stored)
    answers = Counter(record.status for record in writes if record.outcome == Outcome.ANSWERED)
    report.say("writes: acknowledged", found.acknowledged)
    report.say("writes: refused with 503", answers[503])
    report.none(
        "writes: answered otherwise",
        sum(number for status, number in answers.items() if status not in (201, 503)),
    )
    report.none("writes: lost", found.lost)
    report.none("writes: duplicate", found.duplicates)
    report.none("writes: there though refused", found.unexplained)
    # Who comes while a killed site starts waits for it to serve again, which is another promise's
    # business.
    waited = [
        record
        for record in writes
        if not (watch.killed[0] <= record.ended and record.began <= watch.killed[1])
    ]
    longest = max(
        (record.ended - record.began for record in waited if record.outcome == Outcome.ANSWERED),
        default=0.0,
    )
    report.bar(
        "writes: longest wait",
        f"{longest:.2f} s",
        f"≤ {LONGEST_WAIT:g} s",
        held=longest <= LONGEST_WAIT,
        timed=True,
    )
    if set(answers) - {201, 503}:
        report.note(f"writes: {dict(answers)}")


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    for name in SIZES[size].layouts:
        layout, place = LAYOUTS[name], home / name
        if dialect != "sqlite" and layout.database:
            continue  # its disk is another machine's business
        place.mkdir()
        yield await run(place, dialect, layout, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    if not disk.inside():
        return disk.run_inside("disk-full", arguments)
    return stage.main("disk-full", arguments, __doc__, "sqlite,postgresql", prove)
