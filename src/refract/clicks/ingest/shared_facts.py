"""Facts that many events share: saving before the events, and removal after them."""

from datetime import date, timedelta
from functools import partial
from typing import Final

from sqlalchemy import delete, func, select

from refract.clicks.ingest.facts import SharedRows
from refract.clicks.models import ClickEvent
from refract.clicks.queries import FACT_MODELS, list_fact_columns
from refract.core.db.bulk import get_rowcount, get_table
from refract.core.db.types import Model
from refract.core.db.upsert import upsert
from refract.core.runtime import Runtime
from refract.jobs.slices import run_in_slices

BATCH_SIZE: Final = 500
UNUSED_DAYS: Final = 2
"""Days between the last use of facts and the oldest event, for clocks that differ."""


async def save_facts(rt: Runtime, facts: SharedRows) -> None:
    """Save facts in a transaction of their own, before the events that refer to them.

    Facts without events do no harm. In the transaction of the events, two writers could wait for
    each other.
    """
    today = rt.clock.now().date()
    async with rt.db.write() as session:
        for model in FACT_MODELS.values():
            names = list_fact_columns(model)
            rows = [
                {"id": fact_id, "seen_on": today, **dict(zip(names, values, strict=True))}
                for fact_id, values in sorted(facts.get(model, {}).items())
            ]
            if rows:
                await upsert(session, model, rows, ["seen_on"])


async def drop_unused_facts(rt: Runtime) -> int:
    """Delete facts that no event in the database refers to any more; return their number.

    No event is younger than the day on which it was stored. So all events that were stored before
    the day of the oldest one have left the database.
    """
    async with rt.db.read() as session:
        oldest = await session.scalar(select(func.min(ClickEvent.at)))
    before = (oldest or rt.clock.now()).date() - timedelta(days=UNUSED_DAYS)
    dropped = 0
    for model in FACT_MODELS.values():
        dropped += await run_in_slices(rt, partial(_drop_batch, rt, model, before))
    return dropped


async def _drop_batch(rt: Runtime, model: type[Model], before: date) -> int:
    table = get_table(model)
    unused = table.c.seen_on < before
    async with rt.db.read() as session:
        ids = list(await session.scalars(select(table.c.id).where(unused).limit(BATCH_SIZE)))
    if not ids:
        return 0
    async with rt.db.write() as session:
        return get_rowcount(await session.execute(delete(table).where(table.c.id.in_(ids), unused)))
