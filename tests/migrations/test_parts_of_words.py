"""Revision 0036 enqueues one job if items are indexed already."""

import importlib
from collections.abc import Callable

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, select

from refract.core.runtime import Runtime
from refract.jobs.models import Job
from refract.library.models import Item
from refract.library.search import index_items
from refract.library.search.jobs import ReindexItems
from tests import make
from tests.tags import items

REVISION = importlib.import_module("refract.migrations.versions.0036_parts_of_words")


def _run(step: Callable[[], None]) -> Callable[[Connection], None]:
    def run(connection: Connection) -> None:
        with Operations.context(MigrationContext.configure(connection)):
            step()

    return run


async def _step(rt: Runtime, step: Callable[[], None]) -> list[Job]:
    async with rt.db.write() as session:
        await (await session.connection()).run_sync(_run(step))
    async with rt.db.read() as session:
        found = select(Job).where(Job.kind == ReindexItems.kind)
        return list(await session.scalars(found))


async def test_items_that_are_indexed_get_one_job(rt: Runtime) -> None:
    assert await _step(rt, REVISION.upgrade) == [], "a new installation has nothing to index"
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        await items.item(session, rt, ada, title="Postgres as a queue")
        await index_items(session, list(await session.scalars(select(Item.id))))
    for _ in range(2):  # it can be run again
        assert [job.status for job in await _step(rt, REVISION.upgrade)] == ["PENDING"]
    assert await _step(rt, REVISION.downgrade) == []
