"""From the spools to the database, each click exactly once.

Events, totals and the spool's checkpoint move in one transaction, and the checkpoint by compare-and-set: of two ingesters,
or after a commit whose outcome is unknown, one finds the checkpoint elsewhere and applies nothing.
"""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import CursorResult, select, update

from refract.analytics.models import SpoolCheckpoint
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
from refract.analytics.store import add_totals, insert_events, insert_unless_there
from refract.analytics.visitor import facts
from refract.core.db import WriteSession
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime

BATCH = 2000
LOOK_SECONDS = 0.2
BREATH_SECONDS = 0.01
AWAY_SECONDS = 1.0


class CheckpointMoved(Exception):
    """Somebody else has applied this batch, or it was committed when we did not hear of it."""


class Ingester:
    """Applies the spools of one directory. Any number of processes may run one; the lock on the directory lets one work."""

    def __init__(self, rt: Runtime, root: Path | None = None) -> None:
        self._rt = rt
        self._root = root or rt.settings.effective_spool_dir
        self._positions: dict[int, Position] = {}
        self._log = structlog.get_logger("refract.ingest")
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
            self._log.warning("clicks_wait", reason=error.message)
            return AWAY_SECONDS
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
        while True:
            batch = read_batch(spool, position, BATCH)
            if batch.next == position:
                break
            if batch.damage is not None:
                aside = set_aside(spool, batch.damage)
                self._log.error("clicks_unreadable", kept_in=str(aside), size=batch.damage.size)
            try:
                await self._apply(spool, position, batch)
            except CheckpointMoved:
                self._positions.pop(spool.id, None)
                return stored
            position = self._positions[spool.id] = batch.next
            stored += len(batch.clicks)
            self._stored.inc(len(batch.clicks))
            self._lag.set(self._rt.clock.monotonic() - self._caught_up)
            await asyncio.sleep(BREATH_SECONDS)  # others want to write too
        if remove_finished(spool, position):
            self._positions.pop(spool.id, None)
        return stored

    async def _begin(self, spool: SpoolState) -> Position:
        """Where to go on, by the database's word."""
        async with self._rt.db.write() as session:
            fresh = {"spool_id": spool.id, "segment": 1, "place": 0, "node": spool.node[:64], "stored": 0, "torn": 0, "damaged": 0}
            await insert_unless_there(session, SpoolCheckpoint, [fresh | {"updated_at": self._rt.clock.now()}])
            row = (await session.execute(select(SpoolCheckpoint).where(SpoolCheckpoint.spool_id == spool.id))).scalar_one()
            return Position(row.segment, row.place)

    async def _apply(self, spool: SpoolState, position: Position, batch: Batch) -> None:
        now = self._rt.clock.now()
        rows = [_row(spool, batch, click, now) for click in batch.clicks]
        async with self._rt.db.write() as session:
            await self._move(session, spool, position, batch, now)
            if rows:
                await insert_events(session, rows)
                await add_totals(session, rows)

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


def _row(spool: SpoolState, batch: Batch, click: Any, received: datetime) -> dict[str, Any]:
    return {"spool_id": spool.id, "segment": batch.segment, "place": click.offset, "node": spool.node[:64], **facts(click, received)}
