"""Ingest from the spools into the database, each click exactly once."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from refract.clicks import compiled
from refract.clicks.ingest.agents import UserAgentParser
from refract.clicks.ingest.batch import collect_days, create_gatherer
from refract.clicks.ingest.event_rows import (
    EventRows,
    build_shape,
    format_second,
    join_by_target,
)
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
from refract.clicks.rollups.writers import create_writers
from refract.clicks.spool.format import decode_clicks
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
from refract.core.db.session import WriteSession
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

BATCH_SIZE = 2000
"""Clicks in a run while no more are waiting."""
MAX_BATCH_SIZE = 8000
"""Clicks that are read at once while there is a backlog."""
MIN_BACKLOG_BYTES: Final = 1 << 20
"""Bytes in a batch that show a backlog, whatever the number of clicks: more were not read."""
MAX_RUN_CLICKS: Final = 48_000
"""Clicks in a run while there is a backlog: a roll-up is written once per run.

On a database server a run blocks other writers only when it writes its roll-ups, at its end. SQLite
blocks all writers from the beginning of a transaction, so all events are ready before.
"""
MAX_RUN_SECONDS = 3.0
"""How long a run may go on by the clock: its clicks are not counted before its end.

Three times what a run takes on an idle machine, since a busy one must not make runs shorter.
"""
MAX_LOCK_SECONDS = 0.3
"""CPU time for which a run may block other writers: all on SQLite, else those of roll-ups.

By the clock, a busy machine would make runs shorter, each click dearer and the machine busier.
"""
MAX_BACKLOG_LOCK_SECONDS = 1.0
"""The same while clicks have been waiting for `BACKLOG_SECONDS`.

If every click of a run is of another link, each costs several times as much. Runs that are short
because clicks are dear would then never reach the length at which links repeat.
"""
BACKLOG_SECONDS = 2.0
LOCK_TARGET = 0.8
"""The part of that time at which the next run aims."""
CLICKS_PER_TURN = 100
"""Clicks that are read without yielding: redirects of the same process wait at most for these."""
POLL_INTERVAL = 0.2
YIELD_SECONDS = 0.01
RETRY_INTERVAL = 1.0


class PreparedBatch(NamedTuple):
    """A batch with the rows of its events."""

    batch: SpoolBatch
    rows: EventRows


@dataclass(frozen=True, slots=True)
class IngestTools:
    """Tools that take time and memory to load: loaded with the first click, in a thread."""

    agents: UserAgentParser
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
        implementation = rt.metrics.gauge(
            "refract_ingest_compiled", "1 if clicks are gathered by compiled code, 0 by Python"
        )
        implementation.set(compiled.IMPLEMENTATION == "compiled")

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
        if self._tools is not None and self._tools.agents.is_idle:
            await asyncio.to_thread(self._tools.agents.drop_patterns)
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
                batch = await self._read_batch(run, position)
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

    async def _read_batch(self, run: IngestRun, position: SpoolPosition) -> SpoolBatch:
        """Read a batch in a thread, since the disk may be slow."""
        limit = min(self._run_size - run.gathered, MAX_BATCH_SIZE)
        return await asyncio.to_thread(read_batch, run.spool, position, limit)

    async def _apply_run(self, run: IngestRun, batch: SpoolBatch, *, follow: bool = True) -> None:
        """Apply a batch, and with `follow` the ones behind it, in one transaction."""
        ready = [await self._prepare_batch(run, batch)]
        if follow and self._rt.db.dialect == "sqlite":
            while self._should_continue(run, ready[-1].batch):
                ready.append(await self._read_ahead(run, ready[-1].batch.next))
            await asyncio.to_thread(join_by_target, [events for _, events in ready])
        try:
            if run.gatherer is not None and self._rt.db.dialect == "sqlite":
                updater = (await self._get_tools()).updater
                async with self._rt.db.read() as reader:
                    await updater.prepare_clicks(reader, run.gatherer.tallies)
            async with self._rt.db.write() as session:
                begun = time.process_time()  # on SQLite there is one writer from here on
                await self._store_batches(session, run, ready, follow=follow)
                begun = begun if self._rt.db.dialect == "sqlite" else time.process_time()
                if run.gatherer is not None:
                    updater = (await self._get_tools()).updater
                    await store_sums(session, run.gatherer.tallies, updater)
        except BaseException:
            if self._tools is not None:
                self._tools.updater.reset()
            raise
        self._adapt_run_size(run.clicks, time.process_time() - begun)

    async def _store_batches(
        self,
        session: WriteSession,
        run: IngestRun,
        ready: list[PreparedBatch],
        *,
        follow: bool,
    ) -> None:
        """Store the batches of a run. The next one is read while a database server is busy."""
        may_read = follow and self._rt.db.dialect != "sqlite"
        for batch, events in ready:  # grows meanwhile
            more = may_read and self._should_continue(run, batch)
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
            events.clear()
            if reading is not None:
                ready.append(await reading)

    def _should_continue(self, run: IngestRun, batch: SpoolBatch) -> bool:
        """Return whether the batch after this one belongs to the same run."""
        has_backlog = (
            batch.click_count >= MAX_BATCH_SIZE
            or len(batch.frames) >= MIN_BACKLOG_BYTES
            or batch.next.segment > batch.segment
        )
        return (
            has_backlog
            and run.gathered < self._run_size
            and self._rt.clock.monotonic() - run.began_at < MAX_RUN_SECONDS
        )

    async def _read_ahead(self, run: IngestRun, position: SpoolPosition) -> PreparedBatch:
        return await self._prepare_batch(run, await self._read_batch(run, position))

    def _quarantine_damage(self, spool: SpoolState, batch: SpoolBatch) -> None:
        if batch.damage is not None:
            aside = quarantine_damage(spool, batch.damage)
            self._log.error("clicks_quarantined", kept_in=str(aside), size=batch.damage.size)

    def _adapt_run_size(self, clicks: int, cpu_seconds: float) -> None:
        """Use longer runs during a backlog, shorter ones after blocking others too long."""
        waiting = self._rt.clock.monotonic() - self._caught_up_at
        limit = MAX_LOCK_SECONDS if waiting < BACKLOG_SECONDS else MAX_BACKLOG_LOCK_SECONDS
        fitting = round(clicks * limit * LOCK_TARGET / max(cpu_seconds, 1e-6))
        if cpu_seconds > limit:
            self._run_size = max(BATCH_SIZE, min(fitting, self._run_size))
        elif clicks >= self._run_size:
            self._run_size = max(BATCH_SIZE, min(fitting, self._run_size * 2, MAX_RUN_CLICKS))

    async def _get_tools(self) -> IngestTools:
        if self._tools is None:
            async with self._rt.db.write() as session:
                await create_writers(session)
            self._tools = await asyncio.to_thread(self._load_tools)
        if self._tools.places.is_due and await asyncio.to_thread(self._tools.places.refresh):
            self._tools.extractor.invalidate_places()
        return self._tools

    def _load_tools(self) -> IngestTools:
        places = PlaceLookup(self._rt.settings.geoip_path, self._rt.clock)
        agents = UserAgentParser()
        return IngestTools(agents, places, FactsExtractor(agents, places), RollupUpdater())

    async def _prepare_batch(self, run: IngestRun, batch: SpoolBatch) -> PreparedBatch:
        """Build the rows of a batch, and add its clicks to the sums of its run."""
        rows: EventRows = []
        if not batch.click_count:
            return PreparedBatch(batch, rows)
        tools = await self._get_tools()
        if not tools.agents.has_patterns:
            agents = (click.agent for click in decode_clicks(batch.frames, batch.base))
            await asyncio.to_thread(tools.agents.load_patterns, agents)
        received = self._rt.clock.now_ns() // 1000
        salts = await self._salts.get_salts(collect_days(batch.frames, received))
        tools.extractor.begin_day(self._rt.clock.now().date())
        if run.gatherer is None:
            run.gatherer = create_gatherer(tools.extractor, format_second)
        shape = build_shape(self._rt.db.dialect, run.spool.id, batch.segment, run.spool.node[:64])
        run.gatherer.begin_batch(shape, batch.frames, batch.base, received, salts)
        while run.gatherer.add_clicks(rows, CLICKS_PER_TURN):  # noqa: ASYNC110 - no wait, work
            await asyncio.sleep(0)  # let requests be answered
        run.gathered += batch.click_count
        await self._save_facts(tools.extractor)
        return PreparedBatch(batch, rows)

    async def _save_facts(self, extractor: FactsExtractor) -> None:
        if extractor.unsaved:
            try:
                await save_facts(self._rt, extractor.unsaved)
            except BaseException:
                extractor.reset()
                raise
            extractor.unsaved.clear()
