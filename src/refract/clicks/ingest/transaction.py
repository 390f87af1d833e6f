"""The transactions of the ingester.

Events, roll-ups, totals and the spool's checkpoint change together, the checkpoint by
compare-and-set: of two ingesters, or after a commit whose outcome is unknown, the later one finds
the checkpoint moved and applies nothing.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update

from refract.clicks.ingest.batch import EventGatherer, RollupDelta, RollupSlot, sum_totals
from refract.clicks.ingest.event_rows import EventRows, insert_events
from refract.clicks.models import SpoolCheckpoint
from refract.clicks.rollups.store import add_totals
from refract.clicks.rollups.updater import RollupUpdater
from refract.clicks.spool.reader import SpoolBatch, SpoolPosition, SpoolState
from refract.core.db.bulk import get_rowcount
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.runtime import Runtime


class CheckpointMoved(Exception):
    """Another ingester applied this batch, or an earlier commit of it succeeded unnoticed."""


@dataclass(slots=True)
class IngestRun:
    """Consecutive batches of a spool that are stored in one transaction.

    Roll-ups and totals are written once per run, so a long run costs less per click.
    """

    spool: SpoolState
    position: SpoolPosition
    """The checkpoint after the batches that are stored."""
    began_at: float
    """When the run began, by the monotonic clock."""
    gathered: int = 0
    """The clicks that have been read."""
    clicks: int = 0
    """The clicks whose events are stored."""
    gatherer: EventGatherer | None = None
    """The sums of all batches. None without clicks."""


async def load_checkpoint(rt: Runtime, spool: SpoolState) -> SpoolPosition:
    """Return how far a spool is stored, no matter where its files are."""
    fresh = {
        "spool_id": spool.id,
        "segment": 1,
        "place": 0,
        "node": spool.node[:64],
        "stored": 0,
        "torn": 0,
        "damaged": 0,
        "updated_at": rt.clock.now(),
    }
    async with rt.db.write() as session:
        await insert_if_absent(session, SpoolCheckpoint, [fresh])
        row = (
            await session.execute(
                select(SpoolCheckpoint).where(SpoolCheckpoint.spool_id == spool.id)
            )
        ).scalar_one()
        return SpoolPosition(row.segment, row.place)


async def store_batch(
    session: WriteSession, run: IngestRun, batch: SpoolBatch, events: EventRows, now: datetime
) -> None:
    """Move the checkpoint over a batch and insert its events; raise `CheckpointMoved`."""
    await _advance_checkpoint(session, run, batch, now)
    if events:
        await insert_events(session, events)
    run.position = batch.next
    run.clicks += batch.click_count


async def store_sums(
    session: WriteSession, tallies: Mapping[RollupSlot, RollupDelta], updater: RollupUpdater
) -> None:
    """Add the sums of a run to roll-ups and totals.

    Totals come last: until the commit, other runs wait for the links they have in common.
    """
    await updater.add_clicks(session, tallies)
    links, others = sum_totals(tallies)
    await add_totals(session, "link_totals", "link_id", links)
    await add_totals(session, "list_totals", "target_id", others)


async def _advance_checkpoint(
    session: WriteSession, run: IngestRun, batch: SpoolBatch, now: datetime
) -> None:
    unmoved = update(SpoolCheckpoint).where(
        SpoolCheckpoint.spool_id == run.spool.id,
        SpoolCheckpoint.segment == run.position.segment,
        SpoolCheckpoint.place == run.position.offset,
    )
    moved = await session.execute(
        unmoved.values(
            segment=batch.next.segment,
            place=batch.next.offset,
            stored=SpoolCheckpoint.stored + batch.click_count,
            torn=SpoolCheckpoint.torn + batch.torn,
            damaged=SpoolCheckpoint.damaged + (batch.damage.size if batch.damage else 0),
            updated_at=now,
        )
    )
    if get_rowcount(moved) != 1:
        raise CheckpointMoved


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause the cyclic garbage collector.

    A batch allocates thousands of tuples without cycles, and each generation of them would be
    traversed for nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
