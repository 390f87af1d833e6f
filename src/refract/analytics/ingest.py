"""From the spools to the database, each click exactly once.

Events, roll-ups, totals and the spool's checkpoint move in one transaction, and the checkpoint by compare-and-set: of two
ingesters, or after a commit whose outcome is unknown, one finds the checkpoint elsewhere and applies nothing.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog
from sqlalchemy import CursorResult, select, update

from refract.analytics.agents import Agents
from refract.analytics.models import SpoolCheckpoint
from refract.analytics.places import Places
from refract.analytics.rollups import Ledger
from refract.analytics.salts import Salts
from refract.analytics.spool_reader import (
    Batch,
    Position,
    SpoolState,
    only_ingester,
    read_batch,
    remove_finished,
    remove_unborn,
    set_aside,
    spools,
)
from refract.analytics.state import hold, move
from refract.analytics.store import add_totals, insert_events
from refract.analytics.tally import Gathered, Gatherer, days_of
from refract.analytics.visitor import Reader
from refract.core.db import WriteSession
from refract.core.error_throttle import ErrorThrottle
from refract.core.errors import Unavailable
from refract.core.rows import insert_or_skip, slices
from refract.core.runtime import Runtime

BATCH = 2000
"""Clicks in a batch, as long as no more wait."""
MOST = 8000
"""Clicks in a batch of who is behind: a roll-up is written once per batch, so large ones cost less by the click."""
HOLD_SECONDS = 0.3
"""How long a large batch may keep other writers waiting: all of them on SQLite, those of roll-ups elsewhere."""
SLICE = 100
"""Clicks that are read in one go: beside redirects in one process, nobody waits longer than for these."""
LOOK_SECONDS = 0.2
BREATH_SECONDS = 0.01
AWAY_SECONDS = 1.0


class CheckpointMoved(Exception):
    """Somebody else has applied this batch, or it was committed when we did not hear of it."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What takes time and memory to load: only once there is a click, and not on the event loop."""

    places: Places
    reader: Reader
    ledger: Ledger


class Ingester:
    """Applies the spools of one directory. Any number of processes may run one; the lock on the directory lets one work."""

    def __init__(self, rt: Runtime, root: Path | None = None) -> None:
        self._rt = rt
        self._root = root or rt.settings.effective_spool_dir
        self._positions: dict[int, Position] = {}
        self._salts = Salts(rt)
        self._tools: Tools | None = None
        self._ahead: tuple[Batch, Gathered] | None = None
        self._most = BATCH
        self._log = structlog.get_logger("refract.ingest")
        self._errors = ErrorThrottle(self._log, "clicks_wait")
        self._stored = rt.metrics.counter("refract_clicks_stored", "Clicks that were read from a spool and stored")
        self._lag = rt.metrics.gauge("refract_ingest_lag_seconds", "How long clicks have been waiting to be stored")
        self._caught_up = rt.clock.monotonic()

    async def run(self) -> None:
        """Apply what comes for as long as the process runs; a database that is away is waited for."""
        while True:
            with only_ingester(self._root) as mine:
                while mine:
                    pause = await self._round()
                    await asyncio.sleep(pause)
            await asyncio.sleep(AWAY_SECONDS)

    async def _round(self) -> float:
        try:
            await self.apply_all()
        except Unavailable as error:
            self._positions.clear()
            self._lag.set(self._rt.clock.monotonic() - self._caught_up)
            self._errors.report(error)
            return AWAY_SECONDS
        self._errors.clear()
        return LOOK_SECONDS

    async def apply_all(self) -> int:
        """Apply everything that is there now; the answer is the number of clicks stored."""
        remove_unborn(self._root)
        stored = 0
        for spool in spools(self._root):
            stored += await self._apply_spool(spool)
        self._caught_up = self._rt.clock.monotonic()
        self._lag.set(0)
        return stored

    async def checkpoint(self, spool: SpoolState) -> Position:
        """How far a spool is stored, wherever its files are."""
        return await self._begin(spool)

    async def apply(self, spool: SpoolState, position: Position, batch: Batch) -> None:
        """Store a batch that begins at the checkpoint; `CheckpointMoved` when it does not."""
        await self._apply(spool, position, batch)

    async def _apply_spool(self, spool: SpoolState) -> int:
        position = self._positions.get(spool.id) or await self._begin(spool)
        stored = 0
        batch = await self._read(spool, position)
        while batch.next != position:
            if batch.damage is not None:
                aside = set_aside(spool, batch.damage)
                self._log.error("clicks_unreadable", kept_in=str(aside), size=batch.damage.size)
            try:
                following = await self._apply_and_go_on(spool, position, batch)
            except CheckpointMoved:
                self._positions.pop(spool.id, None)
                return stored
            position = self._positions[spool.id] = batch.next
            stored += len(batch.clicks)
            self._stored.inc(len(batch.clicks))
            self._lag.set(self._rt.clock.monotonic() - self._caught_up)
            batch = following
        if remove_finished(spool, position):
            self._positions.pop(spool.id, None)
        return stored

    async def _read(self, spool: SpoolState, position: Position) -> Batch:
        """Read a batch in a thread: thousands of frames take longer than a redirect may wait."""
        return await asyncio.to_thread(read_batch, spool, position, self._most)

    async def _apply_and_go_on(self, spool: SpoolState, position: Position, batch: Batch) -> Batch:
        """Apply a batch; the answer is the one behind it. While a database server is at work, that one is read."""
        if self._rt.db.dialect == "sqlite":  # whose driver would have to fight for the interpreter's lock while it holds the database's
            await self._apply(spool, position, batch)
            await asyncio.sleep(BREATH_SECONDS)  # others want to write too
            return await self._read(spool, batch.next)
        following = await self._read(spool, batch.next)
        looking = asyncio.create_task(self._look_ahead(spool, following))
        try:
            await self._apply(spool, position, batch)
        except BaseException:
            looking.cancel()
            raise
        finally:
            await asyncio.wait([looking])
        return following

    def _adapt(self, clicks: int, seconds: float) -> None:
        """Larger batches while more is waiting than fits, smaller ones when others had to wait too long for this."""
        if seconds > HOLD_SECONDS:
            self._most = max(BATCH, self._most // 2)
        elif clicks == self._most and seconds < HOLD_SECONDS / 2:
            self._most = min(MOST, self._most * 2)

    async def _look_ahead(self, spool: SpoolState, batch: Batch) -> None:
        if batch.clicks:
            with suppress(Unavailable):  # to be met again when it is this batch's turn
                self._ahead = batch, await self._gather(await self._ready(), spool, batch)

    async def _begin(self, spool: SpoolState) -> Position:
        """Where to go on, by the database's word."""
        async with self._rt.db.write() as session:
            fresh = {"spool_id": spool.id, "segment": 1, "place": 0, "node": spool.node[:64], "stored": 0, "torn": 0, "damaged": 0}
            await insert_or_skip(session, SpoolCheckpoint.__table__, [fresh | {"updated_at": self._rt.clock.now()}])  # type: ignore[arg-type]
            row = (await session.execute(select(SpoolCheckpoint).where(SpoolCheckpoint.spool_id == spool.id))).scalar_one()
            return Position(row.segment, row.place)

    async def _apply(self, spool: SpoolState, position: Position, batch: Batch) -> None:
        now = self._rt.clock.now()
        if not batch.clicks:
            async with self._rt.db.write() as session:
                await self._move(session, spool, position, batch, now)
            return
        (known, gathered), self._ahead = self._ahead or (None, None), None
        tools = await self._ready()
        if known is not batch or gathered is None:
            gathered = await self._gather(tools, spool, batch)
        try:
            async with self._rt.db.write() as session:
                begun = self._rt.clock.monotonic()  # on SQLite there is one writer from here on
                await self._move(session, spool, position, batch, now)
                await insert_events(session, gathered.events)
                state = await hold(session)  # from here to the commit there is one writer
                begun = begun if self._rt.db.dialect == "sqlite" else self._rt.clock.monotonic()
                await move(session, await tools.ledger.add(session, state, gathered.tallies))
                await add_totals(session, "link_totals", "link_id", gathered.totals(of_links=True))
                await add_totals(session, "list_totals", "target_id", gathered.totals(of_links=False))
        except BaseException:
            tools.ledger.forget()
            raise
        self._adapt(len(batch.clicks), self._rt.clock.monotonic() - begun)

    async def _ready(self) -> Tools:
        if self._tools is None:
            self._tools = await asyncio.to_thread(self._load)
        if self._tools.places.due and await asyncio.to_thread(self._tools.places.refresh):
            self._tools.reader.forget_places()
        return self._tools

    def _load(self) -> Tools:
        places = Places(self._rt.settings.geoip_path, self._rt.clock)
        return Tools(places, Reader(Agents(), places), Ledger())

    async def _gather(self, tools: Tools, spool: SpoolState, batch: Batch) -> Gathered:
        received = self._rt.clock.now_ns() // 1000
        salts = await self._salts.of(days_of(batch.clicks, received))
        gathered = Gathered()
        gatherer = Gatherer(tools.reader, self._rt.db.dialect, spool.id, batch.segment, spool.node[:64])
        for some in slices(batch.clicks, SLICE):
            gatherer.gather(gathered, some, received, salts)
            await asyncio.sleep(0)  # others answer requests meanwhile
        return gathered

    @staticmethod
    async def _move(session: WriteSession, spool: SpoolState, position: Position, batch: Batch, now: datetime) -> None:
        unmoved = update(SpoolCheckpoint).where(
            SpoolCheckpoint.spool_id == spool.id, SpoolCheckpoint.segment == position.segment, SpoolCheckpoint.place == position.offset
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
        if not isinstance(moved, CursorResult) or moved.rowcount != 1:
            raise CheckpointMoved
