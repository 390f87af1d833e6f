"""Ingest from the spools into the database, each click exactly once."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from refract.clicks.ingest.agents import UserAgentParser
from refract.clicks.ingest.batch import EventBatch, EventBatchBuilder, collect_days
from refract.clicks.ingest.facts import FactsExtractor
from refract.clicks.ingest.places import PlaceLookup
from refract.clicks.ingest.salts import SaltStore
from refract.clicks.ingest.shared_facts import save_facts
from refract.clicks.ingest.transaction import (
    CheckpointMoved,
    IngestRun,
    load_checkpoint,
    pause_gc,
    store_batch,
    store_sums,
)
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
from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

BATCH_SIZE = 2000
"""Clicks in a run while no more are waiting."""
MAX_BATCH_SIZE = 8000
"""Clicks that are read at once while there is a backlog."""
MAX_RUN_CLICKS: Final = {"sqlite": MAX_BATCH_SIZE, "postgresql": 48_000, "mysql": 48_000}
"""Clicks in a run while there is a backlog.

A roll-up is written once per run. On a database server a run is many batches: it blocks other
writers only when it writes its roll-ups, at its end. On SQLite a run is one batch, since it blocks
all other writers from its beginning.
"""
MAX_RUN_SECONDS = 1.0
"""How long a run may go on: its clicks are not counted before its end."""
MAX_LOCK_SECONDS = 0.3
"""CPU time for which a run may block other writers: all on SQLite, else those of roll-ups.

By the clock, a busy machine would make runs shorter, each click dearer and the machine busier.
"""
CLICKS_PER_TURN = 100
"""Clicks that are read without yielding: redirects of the same process wait at most for these."""
POLL_INTERVAL = 0.2
YIELD_SECONDS = 0.01
RETRY_INTERVAL = 1.0


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
        self._run_size = BATCH_SIZE
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
        return await load_checkpoint(self._rt, spool)

    async def apply_batch(
        self, spool: SpoolState, position: SpoolPosition, batch: SpoolBatch
    ) -> None:
        """Store a batch that begins at the checkpoint; raise `CheckpointMoved` if it does not."""
        with pause_gc():
            await self._apply_run(self._begin_run(spool, position), batch, follow=False)

    async def _apply_spool(self, spool: SpoolState) -> int:
        position = self._positions.get(spool.id) or await self.load_checkpoint(spool)
        stored = 0
        while True:
            run = self._begin_run(spool, position)
            with pause_gc():
                batch = await self._read_batch(spool, position)
                if batch.next == position:
                    break
                try:
                    await self._apply_run(run, batch)
                except CheckpointMoved:
                    self._positions.pop(spool.id, None)
                    return stored
            position = self._positions[spool.id] = run.position
            stored += run.clicks
            self._stored.inc(run.clicks)
            self._lag.set(self._rt.clock.monotonic() - self._caught_up_at)
            if self._rt.db.dialect == "sqlite":
                await asyncio.sleep(YIELD_SECONDS)  # let other writers in
        if remove_finished(spool, position):
            self._positions.pop(spool.id, None)
        return stored

    def _begin_run(self, spool: SpoolState, position: SpoolPosition) -> IngestRun:
        return IngestRun(spool, position, self._rt.clock.monotonic())

    async def _read_batch(self, spool: SpoolState, position: SpoolPosition) -> SpoolBatch:
        """Read a batch in a thread: thousands of frames take longer than a redirect may wait."""
        return await asyncio.to_thread(read_batch, spool, position, self._batch_size)

    @property
    def _batch_size(self) -> int:
        return min(self._run_size, MAX_BATCH_SIZE)

    async def _apply_run(self, run: IngestRun, batch: SpoolBatch, *, follow: bool = True) -> None:
        """Apply a batch, and with `follow` the ones behind it, in one transaction."""
        events = await self._build_event_batch(run, batch)
        try:
            async with self._rt.db.write() as session:
                begun = time.process_time()  # on SQLite there is one writer from here on
                await self._store_batches(session, run, batch, events, follow=follow)
                begun = begun if self._rt.db.dialect == "sqlite" else time.process_time()
                if run.sums.tallies:
                    await store_sums(session, run, (await self._get_tools()).updater)
        except BaseException:
            if self._tools is not None:
                self._tools.updater.reset()
            raise
        self._adapt_run_size(run.clicks, time.process_time() - begun)

    async def _store_batches(
        self,
        session: WriteSession,
        run: IngestRun,
        batch: SpoolBatch,
        events: EventBatch,
        *,
        follow: bool,
    ) -> None:
        """Store the batches of a run. The next one is read while a database server is busy."""
        while True:
            more = follow and self._should_continue(run, batch)
            reading = asyncio.create_task(self._read_ahead(run, batch.next)) if more else None
            try:
                if follow:  # else the node that has the spool did it
                    self._quarantine_damage(run.spool, batch)
                await store_batch(session, run, batch, events, self._rt.clock.now())
            except BaseException:
                if reading is not None:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                raise
            if reading is None:
                return
            batch, events = await reading
            if batch.next == run.position:
                return

    def _should_continue(self, run: IngestRun, batch: SpoolBatch) -> bool:
        """Return whether the batch after this one belongs to the same run."""
        has_backlog = len(batch.clicks) >= self._batch_size or batch.next.segment > batch.segment
        return (
            has_backlog
            and run.clicks + len(batch.clicks) < self._run_size
            # Its driver would compete for the interpreter's lock while it holds the database's.
            and self._rt.db.dialect != "sqlite"
            and self._rt.clock.monotonic() - run.began_at < MAX_RUN_SECONDS
        )

    async def _read_ahead(
        self, run: IngestRun, position: SpoolPosition
    ) -> tuple[SpoolBatch, EventBatch]:
        batch = await self._read_batch(run.spool, position)
        return batch, await self._build_event_batch(run, batch)

    def _quarantine_damage(self, spool: SpoolState, batch: SpoolBatch) -> None:
        if batch.damage is not None:
            aside = quarantine_damage(spool, batch.damage)
            self._log.error("clicks_quarantined", kept_in=str(aside), size=batch.damage.size)

    def _adapt_run_size(self, clicks: int, cpu_seconds: float) -> None:
        """Use longer runs during a backlog, shorter ones after blocking others too long."""
        if cpu_seconds > MAX_LOCK_SECONDS:
            self._run_size = max(BATCH_SIZE, self._run_size // 2)
        elif clicks >= self._run_size and cpu_seconds < MAX_LOCK_SECONDS / 2:
            self._run_size = min(MAX_RUN_CLICKS[self._rt.db.dialect], self._run_size * 2)

    async def _get_tools(self) -> IngestTools:
        if self._tools is None:
            self._tools = await asyncio.to_thread(self._load_tools)
        if self._tools.places.is_due and await asyncio.to_thread(self._tools.places.refresh):
            self._tools.extractor.invalidate_places()
        return self._tools

    def _load_tools(self) -> IngestTools:
        places = PlaceLookup(self._rt.settings.geoip_path, self._rt.clock)
        return IngestTools(places, FactsExtractor(UserAgentParser(), places), RollupUpdater())

    async def _build_event_batch(self, run: IngestRun, batch: SpoolBatch) -> EventBatch:
        """Return the events of a batch, and add them to the sums of its run."""
        event_batch = EventBatch(tallies=run.sums.tallies)
        if not batch.clicks:
            return event_batch
        tools = await self._get_tools()
        received = self._rt.clock.now_ns() // 1000
        salts = await self._salts.get_salts(collect_days(batch.clicks, received))
        tools.extractor.begin_day(self._rt.clock.now().date())
        builder = EventBatchBuilder(
            tools.extractor, self._rt.db.dialect, run.spool.id, batch.segment, run.spool.node[:64]
        )
        for clicks in iter_batches(batch.clicks, CLICKS_PER_TURN):
            builder.add_clicks(event_batch, clicks, received, salts)
            await asyncio.sleep(0)  # let requests be answered
        await self._save_facts(tools.extractor)
        return event_batch

    async def _save_facts(self, extractor: FactsExtractor) -> None:
        if extractor.unsaved:
            try:
                await save_facts(self._rt, extractor.unsaved)
            except BaseException:
                extractor.reset()
                raise
            extractor.unsaved.clear()
