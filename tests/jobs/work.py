"""Payloads and handlers that leave traces, for these tests and the processes they start."""

import asyncio
import os
import time
from collections import Counter
from itertools import count
from typing import ClassVar

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, insert, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.errors import TryAgain
from refract.jobs.handlers import handles
from refract.jobs.payload import JobPayload
from refract.jobs.queue import finish_job, verify_claim

BEAT_SECONDS = 0.5

metadata = MetaData()
effects = Table(
    "job_effects",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("n", BigInteger, nullable=False),
    Column("what", String(20), nullable=False),
    Column("pid", Integer, nullable=False),
)


async def leave(session: WriteSession, rt: Runtime, n: int, what: str) -> None:
    await session.execute(
        insert(effects).values(id=rt.ids.next_id(), n=n, what=what, pid=os.getpid())
    )


async def traces(rt: Runtime, what: str) -> list[tuple[int, int]]:
    """Return (n, pid) of every trace of this kind."""
    async with rt.db.read() as session:
        rows = await session.execute(
            select(effects.c.n, effects.c.pid).where(effects.c.what == what).order_by(effects.c.n)
        )
        return [(row.n, row.pid) for row in rows]


class Ping(JobPayload):
    kind: ClassVar[str] = "test.ping"
    n: int = 0


class Once(JobPayload):
    kind: ClassVar[str] = "test.once"
    n: int


class Slow(JobPayload):
    kind: ClassVar[str] = "test.slow"
    n: int
    seconds: float
    deaf: bool = False


class Beat(JobPayload):
    kind: ClassVar[str] = "test.beat"


class Flaky(JobPayload):
    kind: ClassVar[str] = "test.flaky"
    fails: int = 99


class Broken(JobPayload):
    kind: ClassVar[str] = "test.broken"


@handles(Ping)
async def ping(rt: Runtime, job: Ping) -> None:
    async with rt.db.write() as session:
        await leave(session, rt, job.n, "ping")


@handles(Once)
async def once(rt: Runtime, job: Once) -> None:
    """Leave a trace and end the job in one commit."""
    async with rt.db.write() as session:
        await leave(session, rt, job.n, "once")
        await finish_job(session, job)


@handles(Slow)
async def slow(rt: Runtime, job: Slow) -> None:
    """Leave a trace at the beginning, take time on the first attempt, then leave a fenced trace."""
    async with rt.db.write() as session:
        await leave(session, rt, job.n, "begin")
    print(f"begin {job.n}", flush=True)
    if job.claim is not None and job.claim.attempt == 1:
        if job.deaf:
            time.sleep(job.seconds)  # noqa: ASYNC251 - blocking on purpose: it cannot be cancelled
        else:
            await asyncio.sleep(job.seconds)
    try:
        async with rt.db.write() as session:
            await leave(session, rt, job.n, "end")
            await verify_claim(session, job)
    except BaseException as exc:
        print(f"refused {job.n} {type(exc).__name__}", flush=True)
        raise


@handles(Beat)
async def beat(rt: Runtime, _job: Beat) -> None:
    """Leave a trace every `BEAT_SECONDS`: a clock that runs as fast as this worker process does."""
    for n in count():
        async with rt.db.write() as session:
            await leave(session, rt, n, "beat")
        await asyncio.sleep(BEAT_SECONDS)


def flaky(calls: Counter[str]) -> object:
    @handles(Flaky)
    async def handler(_rt: Runtime, job: Flaky) -> None:
        calls["flaky"] += 1
        if calls["flaky"] <= job.fails:
            raise TryAgain("BUSY_ELSEWHERE", "the other side said 503")

    return handler


@handles(Broken)
async def broken(_rt: Runtime, _job: Broken) -> None:
    await asyncio.sleep(0)
    problem = "a page\0 at https://ada:hunter2secret@example.com is not a page"
    raise ValueError(problem)


HANDLERS = (ping, once, slow, beat, broken)
