"""A thousand captures at once against a budget of twenty.

Exactly twenty are charged, nobody gets an error.

On each database in turn, through the API: the counter, the ledger and the items must agree, and
everybody else's item says OVER_QUOTA and is described by the offline tier. Whoever is told that
nothing was changed and to come back later (503) does so; how often is told.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from httpx import ASGITransport, AsyncClient, Response
from sqlalchemy import func, select

from proofs.harness import stage
from proofs.harness.report import Report
from proofs.harness.site import database
from refract import migrations
from refract.app import WebNode
from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.library.models import Item, LedgerEntry, QuotaDay
from refract.registry import build_worker

LIMIT = 20


@dataclass(frozen=True, slots=True)
class Size:
    captures: int


SIZES = {"short": Size(captures=100), "full": Size(captures=1_000)}


@dataclass(frozen=True, slots=True)
class Books:
    """What the database says in the end."""

    used: int
    entries: int
    paid: int
    states: dict[tuple[str, str | None, str | None], int]


async def _capture(client: AsyncClient, number: int, later: Counter[int]) -> Response:
    while True:
        answer = await client.post("/api/v1/items", json={"text": f"Thought {number}."})
        if answer.status_code != 503:
            return answer
        later[503] += 1
        await asyncio.sleep(float(answer.headers["Retry-After"]) * random.uniform(1, 5))


async def _crowd(rt: Runtime, size: Size, later: Counter[int]) -> list[Response]:
    application, key = WebNode(rt), await stage.make_key(rt)
    async with AsyncClient(
        transport=ASGITransport(application),
        base_url=rt.settings.public_url,
        headers={"X-API-Key": key},
        timeout=600,
    ) as client:
        answers = await asyncio.gather(
            *(_capture(client, number, later) for number in range(size.captures))
        )
    if application.engine is not None:
        application.engine.spool.close()
    return answers


async def _books(rt: Runtime) -> Books:
    async with rt.db.read() as session:
        used = await session.scalar(select(QuotaDay.used)) or 0
        entries = await session.scalar(select(func.count()).select_from(LedgerEntry)) or 0
        paid = (
            await session.scalar(
                select(func.count()).select_from(Item).where(Item.charged_job_id.is_not(None))
            )
            or 0
        )
        states = select(Item.status, Item.enrichment, Item.note, func.count()).group_by(
            Item.status, Item.enrichment, Item.note
        )
        found = {(row[0], row[1], row[2]): row[3] for row in (await session.execute(states)).all()}
    return Books(used, entries, paid, found)


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    random.seed(seed)
    captures = SIZES[size].captures
    async with database(dialect) as url:
        settings = Settings(
            data_dir=home,
            database_url=url,
            model_url="http://127.0.0.1:9/v1",
            model_name="none",
            quota_free=LIMIT,
            key_requests_per_hour=None,
        )
        db = Database(settings)
        await migrations.upgrade(db)
        await db.close()
        async with open_runtime(settings) as rt:
            began, later = time.monotonic(), Counter[int]()
            answers = await _crowd(rt, SIZES[size], later)
            report = Report(f"quota: {captures:,} captures at once, {dialect}", seed)
            report.say("seconds", f"{time.monotonic() - began:.1f}")
            report.say("times told to come back", later[503])
            yield _charged(report, answers, await _books(rt), captures)
            await build_worker(rt).run_due_jobs()
            yield _described(
                Report(f"quota: what becomes of them, {dialect}", seed), await _books(rt), captures
            )


def _charged(report: Report, answers: list[Response], books: Books, captures: int) -> Report:
    created = sum(answer.status_code == 201 for answer in answers)
    over = sum(
        answer.status_code == 201 and answer.json()["note"] == "OVER_QUOTA" for answer in answers
    )
    report.bar("created", created, f"{captures:,}", held=created == captures)
    report.bar(
        "charged: counter, ledger, items",
        f"{books.used} {books.entries} {books.paid}",
        f"{LIMIT} each",
        held=books.used == books.entries == books.paid == LIMIT,
    )
    report.bar("told OVER_QUOTA", over, f"{captures - LIMIT:,}", held=over == captures - LIMIT)
    return report


def _described(report: Report, books: Books, captures: int) -> Report:
    """There is no model at the address.

    What was paid is given back, and everybody has the offline tier's proposal.
    """
    offline = books.states.get(("READY_TO_CONFIRM", "SYSTEM", "OVER_QUOTA"), 0)
    report.bar(
        "described by the offline tier",
        offline,
        f"{captures - LIMIT:,}",
        held=offline == captures - LIMIT,
    )
    report.bar(
        "given back, since there is no model",
        LIMIT - books.used,
        f"{LIMIT}",
        held=(books.used, books.entries) == (0, 2 * LIMIT),
    )
    if sum(books.states.values()) != captures or len(books.states) > 2:
        report.note(str(books.states))
    return report


def main(arguments: list[str]) -> int:
    return stage.main("quota", arguments, __doc__, "sqlite,postgresql,mysql", prove)
