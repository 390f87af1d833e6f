"""4,000 sockets that dawdle: good traffic is all answered, and each dawdler is closed within 10 s.

A third says nothing, a third sends the head of a request a byte a second, a third sends a body so.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from proofs.harness import checker, stage
from proofs.harness.crowd import Crowd, Member
from proofs.harness.journal import Journal, Kind, Outcome
from proofs.harness.load import Ask, Bounds, Load, clicking, under, writing
from proofs.harness.report import Report
from proofs.harness.site import Site, site
from proofs.harness.wire import get

BAR = 10.0
HEAD = b"GET /link-1 HTTP/1.1\r\nhost: proof\r\nx-slow: " + b"z" * 200
KINDS = ("idle", "head", "body")


@dataclass(frozen=True, slots=True)
class Size:
    sockets: int
    workers: int = 2
    patience: float = 25.0


SIZES = {"short": Size(sockets=300, workers=1, patience=15.0), "full": Size(sockets=4000)}


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


def dawdle(made: Site, size: Size, key: str) -> list[Member]:
    """Open all, then a byte a second on each that sends at all, until the last is closed or
    patience is over.
    """
    body = (
        f"POST /api/v1/links HTTP/1.1\r\nhost: proof\r\nx-api-key: {key}\r\ncontent-type:"
        " application/json\r\ncontent-length: 5000\r\n\r\n"
    )
    crowd = Crowd(made.port)
    crowd.open(size.sockets)
    try:
        for number, member in enumerate(crowd.members):
            if kind_of(number) == "body":
                speak(member, body.encode())
        due = time.monotonic() + 1
        for now in crowd.watching(size.patience):
            if now >= due:
                due += 1
                for number, member in enumerate(crowd.members):
                    if not member.closed and kind_of(number) != "idle":
                        speak(
                            member,
                            (
                                HEAD[member.sent : member.sent + 1]
                                if kind_of(number) == "head"
                                else b" "
                            ),
                        )
    finally:
        crowd.close()
    return crowd.members


def speak(member: Member, data: bytes) -> None:
    try:
        member.sent += member.socket.send(data)
    except OSError:
        member.closed = member.closed or time.monotonic()


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    chance = random.Random(seed)
    report = Report(f"slow sockets: {size.sockets:,}, {dialect}, {size.workers} processes", seed)
    with Journal(home / "requests") as journal:
        async with site(home, dialect, workers=size.workers) as made:
            async with made.runtime() as rt:
                names = [link.name for link in await stage.plant(rt, 50)]
                key = await stage.make_key(rt)
            made.start()
            await made.until_complete()
            async with under(*loads(made.port, journal, names, key, size, chance)):
                await asyncio.sleep(0.5)
                members = await asyncio.to_thread(dawdle, made, size, key)
            await made.stop()
        judge(report, members, journal)
    return report


def loads(
    port: int, journal: Journal, names: list[str], key: str, size: Size, chance: random.Random
) -> list[Load]:
    """People who click, look and write, in a hurry."""
    most = Bounds(8, 2_000_000, 10 * size.patience)
    write = writing(
        key,
        "/api/v1/links",
        lambda number: {"destination": f"https://example.com/written/{number}"},
    )
    return [
        Load(
            port,
            journal,
            clicking(names),
            most,
            pause=lambda: chance.uniform(0, 0.01),
            stay=lambda: 20,
        ),
        Load(
            port,
            journal,
            lambda _: Ask(Kind.OTHER, get("/health")),
            most._replace(connections=2),
            pause=lambda: 0.05,
        ),
        Load(port, journal, write, most._replace(connections=2), pause=lambda: 0.05),
    ]


def judge(report: Report, members: list[Member], journal: Journal) -> None:
    for kind in KINDS:
        took = [
            m.closed - m.opened
            for number, m in enumerate(members)
            if kind_of(number) == kind and m.closed
        ]
        report.bar(
            f"{kind}: {len(took):,} closed after",
            checker.spread(took),
            f"≤ {BAR:g} s",
            held=max(took, default=0) <= BAR,
            timed=True,
        )
    report.none("never closed", sum(not member.closed for member in members))
    good: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    waits = []
    for record in journal.read():
        fine = record.acknowledged or (record.kind == Kind.OTHER and record.status == 200)
        waits.append(record.ended - record.began)
        (good if fine else bad)[
            f"{Kind(record.kind).name} {Outcome(record.outcome).name} {record.status}"
        ] += 1
    report.say("good requests answered meanwhile", good.total())
    report.say("they waited", checker.spread(waits))
    report.none("good requests failed", bad.total())
    if bad:
        report.note(f"failed: {dict(bad)}")


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("slow-sockets", arguments, __doc__, "sqlite", prove)
