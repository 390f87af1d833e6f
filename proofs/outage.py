"""Redis stopped, hanging, full or emptied, the database restarted, connections terminated.

Redirects go on, writes say when to come back.

Cached links are asked for all the time, links that nobody has asked for before as well, and writes
are tried until they are acknowledged. Each fault lasts for a while; what is measured belongs to the
fault during which it was asked.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofs import kill
from proofs.harness import checker, stage
from proofs.harness.fleet import Fleet, fleet
from proofs.harness.journal import Journal, Kind, Outcome, Record
from proofs.harness.load import Bounds, Load, clicking, under, writing
from proofs.harness.report import Report
from proofs.harness.wire import Answer
from refract.core.redis import RedisClient
from refract.core.runtime import Runtime

NODES = {"web": 1, "redirect": 1, "worker": 1}
WAIT_FOR_REDIS = 0.25
LONGEST_WRITE = 5.0
HEALED = 2.0


@dataclass(frozen=True, slots=True)
class Size:
    """How long each outage lasts, how many links nobody has asked for before, and how long
    clients rest at most.
    """

    seconds: float
    cold: int
    click_rest: float = 0.02
    write_rest: float = 0.05


SIZES = {
    "short": Size(seconds=1.5, cold=400, click_rest=0.1, write_rest=0.2),
    "full": Size(seconds=30.0, cold=6000),
}


@dataclass(slots=True)
class Phase:
    name: str
    began: float
    ended: float = float("inf")
    healed: float = 0.0


@dataclass(slots=True)
class Watch:
    """What was seen, and when."""

    phases: list[Phase] = field(default_factory=list)
    writes: list[tuple[Record, bool]] = field(default_factory=list)
    cold: list[Record] = field(default_factory=list)

    def saw_write(self, record: Record, answer: Answer) -> None:
        self.writes.append(
            (record, answer.status != 503 or answer.header("retry-after") is not None)
        )

    def saw_cold(self, record: Record, _answer: Answer) -> None:
        self.cold.append(record)


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    chance = random.Random(seed)
    report = Report(
        f"outages: {dialect} and Redis under one redirect, one web and one worker node", seed
    )
    watch = Watch()
    with Journal(home / "requests") as journal:
        async with fleet(home, dialect, NODES) as made, made.webs[0].runtime() as rt:
            names = [link.name for link in await stage.plant(rt, 50)]
            cold = [link.name for link in await stage.plant(rt, size.cold, prefix="cold")]
            ground = kill.Ground(names, await stage.make_key(rt))
            await made.start()
            loads = _loads(made, journal, ground, cold, size, chance, watch)
            async with under(*loads):
                await asyncio.sleep(1)
                for name, fault in _faults(made, rt).items():
                    await _phase(watch, name, fault, size.seconds)
            figures = await made.drained(rt)
            for node in made.all:
                await node.stop()
            records = list(journal.read())
            _judge(report, watch, records)
            await kill.judge_data(report, rt, figures, records)
    return report


def _loads(
    made: Fleet,
    journal: Journal,
    ground: kill.Ground,
    cold: list[str],
    size: Size,
    chance: random.Random,
    watch: Watch,
) -> list[Load]:
    bounds = Bounds(8, 10_000_000, 3600.0)
    port, web = made.redirects[0].port, made.webs[0].port
    write = writing(
        ground.key, "/api/v1/links", lambda number: {"destination": f"{kill.DESTINATION}{number}"}
    )
    unasked = iter(cold)
    loads = [
        Load(
            port,
            journal,
            clicking(ground.names),
            bounds,
            pause=lambda: chance.uniform(0, size.click_rest),
        ),
        Load(
            web,
            journal,
            write,
            bounds._replace(connections=3),
            pause=lambda: chance.uniform(0, size.write_rest),
            retry=True,
        ),
        Load(
            port,
            journal,
            lambda number: clicking([next(unasked, cold[0])])(number),  # noqa: PLW0108 - a new name
            bounds._replace(connections=2, requests=len(cold)),
            pause=lambda: chance.uniform(0.01, 0.06),
        ),
    ]
    loads[1].seen, loads[2].seen = watch.saw_write, watch.saw_cold
    return loads


Faults = dict[str, Callable[[float], Awaitable[None]]]


def _faults(made: Fleet, rt: Runtime) -> Faults:
    async def redis_stopped(seconds: float) -> None:
        await asyncio.to_thread(made.redis.stop)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(made.redis.start)  # it has forgotten everything

    async def redis_slow(seconds: float) -> None:
        pid = made.redis.pid or 0
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    async def redis_full(seconds: float) -> None:
        async with _asking(made) as redis:
            await redis.execute("CONFIG", "SET", "maxmemory", "1", seconds=5)
            await asyncio.sleep(seconds)
            await redis.execute("CONFIG", "SET", "maxmemory", "0", seconds=5)

    async def redis_emptied(seconds: float) -> None:
        async with _asking(made) as redis:
            await redis.execute("FLUSHALL", seconds=5)
        await asyncio.sleep(seconds)

    async def database_restarted(seconds: float) -> None:
        await asyncio.to_thread(made.database.stop)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(made.database.start)

    async def connections_terminated(seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            await made.cut_connections(rt)
            await asyncio.sleep(0.5)

    return {
        "Redis stopped": redis_stopped,
        "Redis hanging": redis_slow,
        "Redis full": redis_full,
        "Redis emptied": redis_emptied,
        "database restarted": database_restarted,
        "connections terminated": connections_terminated,
    }


@asynccontextmanager
async def _asking(made: Fleet) -> AsyncIterator[RedisClient]:
    redis = RedisClient(made.redis.url)
    try:
        yield redis
    finally:
        await redis.close()


async def _phase(
    watch: Watch, name: str, fault: Callable[[float], Awaitable[None]], seconds: float
) -> None:
    phase = Phase(name, time.monotonic())
    watch.phases.append(phase)
    await fault(seconds)
    phase.ended = time.monotonic()
    done = len(watch.writes)
    deadline = phase.ended + 30
    while not any(
        200 <= record.status < 300 and record.began >= phase.ended
        for record, _ in watch.writes[done:]
    ):
        assert time.monotonic() < deadline, f"no write was acknowledged within 30 s after: {name}"
        await asyncio.sleep(0.02)
    phase.healed = time.monotonic() - phase.ended
    await asyncio.sleep(1)


def _judge(report: Report, watch: Watch, records: list[Record]) -> None:
    for phase in watch.phases:
        during = [record for record in records if phase.began <= record.began <= phase.ended]
        cached = [
            record
            for record in during
            if record.kind == Kind.CLICK and record.id not in {one.id for one in watch.cold}
        ]
        unanswered = sum(
            1 for record in cached if record.outcome != Outcome.ANSWERED or record.status != 302
        )
        report.bar(
            f"{phase.name}: cached redirects not answered",
            f"{unanswered} of {len(cached):,}",
            "0",
            held=unanswered == 0 and bool(cached),
        )
        if phase.name.startswith("Redis"):
            waits = [
                record.ended - record.began
                for record in watch.cold
                if phase.began <= record.began <= phase.ended
            ]
            longest = max(waits, default=0.0)
            report.bar(
                f"{phase.name}: uncached look-ups",
                checker.spread(waits),
                f"≤ {WAIT_FOR_REDIS} s",
                held=longest <= WAIT_FOR_REDIS,
                timed=True,
            )
        report.bar(
            f"{phase.name}: writes again",
            f"{phase.healed:.2f} s",
            f"≤ {HEALED:g} s",
            held=phase.healed <= HEALED,
            timed=True,
        )
    slow = [record.ended - record.began for record, _ in watch.writes]
    report.bar(
        "writes",
        checker.spread(slow),
        f"≤ {LONGEST_WRITE:g} s",
        held=max(slow, default=0.0) <= LONGEST_WRITE,
        timed=True,
    )
    report.none("503 without Retry-After", sum(not well for _, well in watch.writes))
    odd = Counter(record.status for record, _ in watch.writes if record.status not in (201, 503))
    report.none("writes answered otherwise", odd.total())
    if odd:
        report.note(f"writes answered otherwise: {dict(odd)}")


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("outage", arguments, __doc__, "postgresql,mysql", prove)
