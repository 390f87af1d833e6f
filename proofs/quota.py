"""A thousand captures at once against a budget of twenty: exactly twenty are charged, nobody gets an error.

On each database in turn, through the API: the counter, the ledger and the items must agree, and everybody else's item says OVER_QUOTA.
Whoever is told that nothing was changed and to come back later (503) does so; how often is part of the figures.
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from httpx import ASGITransport, AsyncClient, Response
from sqlalchemy import func, make_url, select, text

from refract import migrations
from refract.app import Application
from refract.core.db import Database
from refract.core.runtime import running
from refract.core.settings import Settings
from refract.library.models import Item
from refract.library.quota_models import LedgerEntry, QuotaDay
from tests import make

LIMIT = 20


async def _scratch(dialect: str) -> str | None:
    """A database of its own on the server there is."""
    if dialect == "sqlite":
        return None
    server = os.environ[f"REFRACT_TEST_{dialect.upper()}_URL"]
    name = f"proof_quota_{os.getpid()}"
    admin = Database(Settings(database_url=server))
    async with admin.engine.connect() as connection:
        plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await plain.execute(text(f"DROP DATABASE IF EXISTS {name}"))
        await plain.execute(text(f"CREATE DATABASE {name}"))
    await admin.close()
    return str(make_url(server).set(database=name).render_as_string(hide_password=False))


async def _capture(client: AsyncClient, number: int, later: Counter[int]) -> Response:
    while True:
        answer = await client.post("/api/v1/items", json={"text": f"Thought {number}."})
        if answer.status_code != 503:
            return answer
        later[503] += 1
        await asyncio.sleep(float(answer.headers["Retry-After"]) * random.uniform(1, 5))


async def _prove(dialect: str, captures: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        url = await _scratch(dialect)
        settings = Settings(
            data_dir=Path(folder), database_url=url, model_url="http://127.0.0.1:9/v1", model_name="none", quota_free=LIMIT,
            key_requests_per_hour=0,
        )  # fmt: skip
        db = Database(settings)
        await migrations.upgrade(db)
        await db.close()
        async with running(settings) as rt:
            async with rt.db.write() as session:
                key = await make.key(session, rt, await make.person(session, rt, "ada"))
            application = Application(rt)
            started, later = time.monotonic(), Counter[int]()
            async with AsyncClient(
                transport=ASGITransport(application), base_url=settings.public_url, headers={"X-API-Key": key}, timeout=600
            ) as client:
                answers = await asyncio.gather(*(_capture(client, number, later) for number in range(captures)))
            seconds = time.monotonic() - started
            statuses = Counter(answer.status_code for answer in answers)
            over = sum(answer.status_code == 201 and answer.json()["note"] == "OVER_QUOTA" for answer in answers)
            async with rt.db.read() as session:
                used = await session.scalar(select(QuotaDay.used))
                entries = await session.scalar(select(func.count()).select_from(LedgerEntry))
                paid = await session.scalar(select(func.count()).select_from(Item).where(Item.charged_job_id.is_not(None)))
            if application.engine is not None:
                application.engine.spool.close()
    held = statuses == {201: captures} and used == entries == paid == LIMIT and over == captures - LIMIT
    told = f"{dict(statuses)} in {seconds:.1f} s, {later[503]} times told to come back"
    print(f"{dialect:>10}: {told} · used {used} · ledger {entries} · paid items {paid} · over {over} · held {held}")
    return held


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof quota", description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=int, default=1_000)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql", "mysql"])
    given = parser.parse_args(arguments)
    held = [asyncio.run(_prove(dialect, given.captures)) for dialect in given.databases]
    return 0 if all(held) else 1
