"""Ingest from the spools into the database, each click exactly once.

Events, roll-ups, totals and the spool's checkpoint change in one transaction, the checkpoint by
compare-and-set: of two ingesters, or after a commit whose outcome is unknown, the later one finds
the checkpoint moved and applies nothing.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog
from sqlalchemy import select, update

from refract.clicks.ingest.agents import UserAgentParser
from refract.clicks.ingest.batch import EventBatch, EventBatchBuilder, collect_days
from refract.clicks.ingest.facts import FactsExtractor
from refract.clicks.ingest.places import PlaceLookup
from refract.clicks.ingest.salts import SaltStore
from refract.clicks.models import SpoolCheckpoint
from refract.clicks.rollups.state import lock_progress, save_progress
from refract.clicks.rollups.store import add_totals, insert_events
from refract.clicks.rollups.updater import RollupUpdater
from refract.clicks.spool.reader import (
    SpoolBatch,
    SpoolPosition,
    SpoolState,
    list_spools,
    lock_ingester,
    quarantine_damage,
    read_batch,
    remove_finished,
    remove_temp_spools,
)
from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

BATCH_SIZE = 2000
"""Clicks in a batch while no more are waiting."""
MAX_BATCH_SIZE = 8000
"""Clicks in a batch while there is a backlog.

A roll-up is written once per batch, so large batches cost less per click.
"""
MAX_LOCK_SECONDS = 0.3
"""How long a large batch may block other writers: all of them on SQLite, else those of roll-ups."""
CLICKS_PER_TURN = 100
"""Clicks that are read without yielding: redirects of the same process wait at most for these."""
POLL_INTERVAL = 0.2
YIELD_SECONDS = 0.01
RETRY_INTERVAL = 1.0


class CheckpointMoved(Exception):
    """Another ingester applied this batch, or an earlier commit of it succeeded unnoticed."""


@dataclass(frozen=True, slots=True)
class IngestTools:
    """Tools that take time and memory to load: loaded with the first click, in a thread."""

    places: PlaceLookup
    extractor: FactsExtractor
    updater: RollupUpdater


class Ingester:
    """Applies the spools of one directory.

    Any number of processes may run one; the lock on the directory lets only one work.
    """

    def __init__(self, rt: Runtime, root: Path | None = None) -> None:
        self._rt = rt
        self._root = root or rt.settings.effective_spool_dir
        self._positions: dict[int, SpoolPosition] = {}
        self._salts = SaltStore(rt)
        self._tools: IngestTools | None = None
        self._prepared: tuple[SpoolBatch, EventBatch] | None = None
        self._batch_size = BATCH_SIZE
        self._log = structlog.get_logger("refract.ingest")
        self._errors = ErrorThrottle(self._log, "clicks_delayed")
        self._stored = rt.metrics.counter(
            "refract_clicks_stored", "Clicks read from a spool and stored"
        )
        self._lag = rt.metrics.gauge(
            "refract_ingest_lag_seconds", "How long clicks have been waiting to be stored"
        )
        self._caught_up_at = rt.clock.monotonic()

    async def run(self) -> None:
        """Apply clicks until cancelled. Retries while the database is unavailable."""
        while True:
            with lock_ingester(self._root) as mine:
                while mine:
                    pause = await self._run_once()
                    await asyncio.sleep(pause)
            await asyncio.sleep(RETRY_INTERVAL)

    async def _run_once(self) -> float:
        try:
            await self.apply_all()
        except Unavailable as exc:
            self._positions.clear()
            self._lag.set(self._rt.clock.monotonic() - self._caught_up_at)
            self._errors.report(exc)
            return RETRY_INTERVAL
        self._errors.clear()
        return POLL_INTERVAL

    async def apply_all(self) -> int:
        """Apply everything in the spools now; return the number of clicks stored."""
        remove_temp_spools(self._root)
        stored = 0
        for spool in list_spools(self._root):
            stored += await self._apply_spool(spool)
        self._caught_up_at = self._rt.clock.monotonic()
        self._lag.set(0)
        return stored

    async def warm_up(self) -> None:
        """Load what the first click needs, before it arrives."""
        await self._get_tools()

    async def load_checkpoint(self, spool: SpoolState) -> SpoolPosition:
        """Return how far a spool is stored, no matter where its files are."""
        return await self._load_position(spool)

    async def apply_batch(
        self, spool: SpoolState, position: SpoolPosition, batch: SpoolBatch
    ) -> None:
        """Store a batch that begins at the checkpoint; raise `CheckpointMoved` if it does not."""
        await self._apply_batch(spool, position, batch)

    async def _apply_spool(self, spool: SpoolState) -> int:
        position = self._positions.get(spool.id) or await self._load_position(spool)
        stored = 0
        batch = await self._read_batch(spool, position)
        while batch.next != position:
            if batch.damage is not None:
                aside = quarantine_damage(spool, batch.damage)
                self._log.error("clicks_quarantined", kept_in=str(aside), size=batch.damage.size)
            try:
                following = await self._apply_and_read_next(spool, position, batch)
            except CheckpointMoved:
                self._positions.pop(spool.id, None)
                return stored
            position = self._positions[spool.id] = batch.next
            stored += len(batch.clicks)
            self._stored.inc(len(batch.clicks))
            self._lag.set(self._rt.clock.monotonic() - self._caught_up_at)
            batch = following
        if remove_finished(spool, position):
            self._positions.pop(spool.id, None)
        return stored

    async def _read_batch(self, spool: SpoolState, position: SpoolPosition) -> SpoolBatch:
        """Read a batch in a thread: thousands of frames take longer than a redirect may wait."""
        return await asyncio.to_thread(read_batch, spool, position, self._batch_size)

    async def _apply_and_read_next(
        self, spool: SpoolState, position: SpoolPosition, batch: SpoolBatch
    ) -> SpoolBatch:
        """Apply a batch and return the next one, which is read while a database server is busy."""
        # Its driver would compete for the interpreter's lock while it holds the database's.
        if self._rt.db.dialect == "sqlite":
            await self._apply_batch(spool, position, batch)
            await asyncio.sleep(YIELD_SECONDS)  # let other writers in
            return await self._read_batch(spool, batch.next)
        following = await self._read_batch(spool, batch.next)
        preparing = asyncio.create_task(self._prepare_next(spool, following))
        try:
            await self._apply_batch(spool, position, batch)
        except BaseException:
            preparing.cancel()
            raise
        finally:
            await asyncio.wait([preparing])
        return following

    def _adapt_batch_size(self, clicks: int, seconds: float) -> None:
        """Use larger batches during a backlog, smaller ones after blocking others too long."""
        if seconds > MAX_LOCK_SECONDS:
            self._batch_size = max(BATCH_SIZE, self._batch_size // 2)
        elif clicks == self._batch_size and seconds < MAX_LOCK_SECONDS / 2:
            self._batch_size = min(MAX_BATCH_SIZE, self._batch_size * 2)

    async def _prepare_next(self, spool: SpoolState, batch: SpoolBatch) -> None:
        if batch.clicks:
            with suppress(Unavailable):  # it is raised again when this batch is applied
                self._prepared = (
                    batch,
                    await self._build_event_batch(await self._get_tools(), spool, batch),
                )

    async def _load_position(self, spool: SpoolState) -> SpoolPosition:
        """Return the checkpoint in the database, creating it if needed."""
        async with self._rt.db.write() as session:
            fresh = {
                "spool_id": spool.id,
                "segment": 1,
                "place": 0,
                "node": spool.node[:64],
                "stored": 0,
                "torn": 0,
                "damaged": 0,
            }
            await insert_if_absent(
                session,
                SpoolCheckpoint,
                [fresh | {"updated_at": self._rt.clock.now()}],
            )
            row = (
                await session.execute(
                    select(SpoolCheckpoint).where(SpoolCheckpoint.spool_id == spool.id)
                )
            ).scalar_one()
            return SpoolPosition(row.segment, row.place)

    async def _apply_batch(
        self, spool: SpoolState, position: SpoolPosition, batch: SpoolBatch
    ) -> None:
        now = self._rt.clock.now()
        if not batch.clicks:
            async with self._rt.db.write() as session:
                await self._advance_checkpoint(session, spool, position, batch, now)
            return
        (known, event_batch), self._prepared = self._prepared or (None, None), None
        tools = await self._get_tools()
        if known is not batch or event_batch is None:
            event_batch = await self._build_event_batch(tools, spool, batch)
        try:
            async with self._rt.db.write() as session:
                begun = self._rt.clock.monotonic()  # on SQLite there is one writer from here on
                await self._advance_checkpoint(session, spool, position, batch, now)
                await insert_events(session, event_batch.events)
                state = await lock_progress(session)  # from here to the commit there is one writer
                begun = begun if self._rt.db.dialect == "sqlite" else self._rt.clock.monotonic()
                await save_progress(
                    session, await tools.updater.add_clicks(session, state, event_batch.tallies)
                )
                await add_totals(
                    session, "link_totals", "link_id", event_batch.sum_totals(of_links=True)
                )
                await add_totals(
                    session, "list_totals", "target_id", event_batch.sum_totals(of_links=False)
                )
        except BaseException:
            tools.updater.reset()
            raise
        self._adapt_batch_size(len(batch.clicks), self._rt.clock.monotonic() - begun)

    async def _get_tools(self) -> IngestTools:
        if self._tools is None:
            self._tools = await asyncio.to_thread(self._load_tools)
        if self._tools.places.is_due and await asyncio.to_thread(self._tools.places.refresh):
            self._tools.extractor.invalidate_places()
        return self._tools

    def _load_tools(self) -> IngestTools:
        places = PlaceLookup(self._rt.settings.geoip_path, self._rt.clock)
        return IngestTools(places, FactsExtractor(UserAgentParser(), places), RollupUpdater())

    async def _build_event_batch(
        self, tools: IngestTools, spool: SpoolState, batch: SpoolBatch
    ) -> EventBatch:
        received = self._rt.clock.now_ns() // 1000
        salts = await self._salts.get_salts(collect_days(batch.clicks, received))
        event_batch = EventBatch()
        builder = EventBatchBuilder(
            tools.extractor, self._rt.db.dialect, spool.id, batch.segment, spool.node[:64]
        )
        for clicks in iter_batches(batch.clicks, CLICKS_PER_TURN):
            builder.add_clicks(event_batch, clicks, received, salts)
            await asyncio.sleep(0)  # let requests be answered
        return event_batch

    @staticmethod
    async def _advance_checkpoint(
        session: WriteSession,
        spool: SpoolState,
        position: SpoolPosition,
        batch: SpoolBatch,
        now: datetime,
    ) -> None:
        unmoved = update(SpoolCheckpoint).where(
            SpoolCheckpoint.spool_id == spool.id,
            SpoolCheckpoint.segment == position.segment,
            SpoolCheckpoint.place == position.offset,
        )
        moved = await session.execute(
            unmoved.values(
                segment=batch.next.segment,
                place=batch.next.offset,
                stored=SpoolCheckpoint.stored + len(batch.clicks),
                torn=SpoolCheckpoint.torn + batch.torn,
                damaged=SpoolCheckpoint.damaged + (batch.damage.size if batch.damage else 0),
                updated_at=now,
            )
        )
        if get_rowcount(moved) != 1:
            raise CheckpointMoved
