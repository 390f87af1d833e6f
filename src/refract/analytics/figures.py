"""Figures that add up: what was accepted is stored, or still pending, or was not kept; any drift is named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from refract.analytics.archive import archived
from refract.analytics.frames import LINK_CLICK
from refract.analytics.models import ClickEvent, SpoolCheckpoint
from refract.analytics.spool_reader import Position, acknowledged, not_kept, pending, spools, what_was_set_aside
from refract.analytics.state import state_of
from refract.analytics.sums import DayFigures, days_that_differ, links_that_differ, rolled_up
from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals


@dataclass(frozen=True, slots=True)
class Figures:
    """Clicks, counted in places that know nothing of each other."""

    stored: int
    """By the checkpoints: what was applied from the spools."""
    pending: int
    """In the spools, not yet applied."""
    not_kept: int
    """Answered while the disk was full."""
    events: int
    """Rows of events, in the database and in the archive."""
    totals: int
    """People and bots in the totals of all links."""
    link_events: int
    """Those of them that are clicks on links."""
    rolled_up: int
    """Clicks in the roll-ups, each once, and those that have outlived all roll-ups."""
    unreadable: tuple[str, ...]
    """Files with bytes that could not be read as clicks."""
    days: tuple[DayFigures, ...] = ()
    """Days whose events and roll-ups differ."""
    links: int = 0
    """Links whose roll-ups and totals differ."""
    absent: tuple[str, ...] = ()
    """Files of the archive that are not where they should be."""
    acknowledged: tuple[int, ...] = ()
    """Bytes of each unreadable piece whose loss an operator has acknowledged."""

    @property
    def accepted(self) -> int:
        return self.stored + self.pending + self.not_kept

    @property
    def drift(self) -> list[str]:
        """What does not add up, in words; empty when everything does."""
        found = []
        if self.stored != self.events:
            found.append(f"The spools gave {self.stored} clicks, but {self.events} events are stored.")
        if self.totals != self.link_events:
            found.append(f"The totals of links add up to {self.totals}, but {self.link_events} clicks on links are stored.")
        if self.stored != self.rolled_up:
            found.append(f"The spools gave {self.stored} clicks, but the roll-ups hold {self.rolled_up}.")
        found += [f"On {day.day} there are {day.events} events, but the roll-ups hold {day.rolled_up} clicks." for day in self.days]
        if self.links:
            found.append(f"The roll-ups of {self.links} links do not add up to their totals.")
        found += [f"The archive lacks the file {name}." for name in self.absent]
        found += [f"Clicks that could not be read are kept in {path}: see how-to/backups.md." for path in self.unreadable]
        return found


async def add_up(rt: Runtime, root: Path | None = None) -> Figures:
    """Count everything. All database figures come from one snapshot."""
    root = root or rt.settings.effective_spool_dir
    async with rt.db.read() as session:
        state = await state_of(session)
        places = {row.spool_id: row for row in await session.scalars(select(SpoolCheckpoint))}
        totals = await session.scalar(select(func.coalesce(func.sum(LinkTotals.total_clicks + LinkTotals.bot_clicks), 0)))
        old = await archived(session)
        counted: dict[str, Any] = {
            "events": await _count(session, None) + old.events,
            "link_events": await _count(session, LINK_CLICK) + old.link_events,
            "totals": int(totals or 0),
            "rolled_up": await rolled_up(session, state),
            "days": await days_that_differ(session, state),
            "links": 0 if state.outlived else await links_that_differ(session, state),
        }
    waiting = 0
    for spool in spools(root):
        row = places.get(spool.id)
        waiting += pending(spool, Position(row.segment, row.place) if row else Position()).clicks
    return Figures(
        stored=sum(row.stored for row in places.values()),
        pending=waiting,
        not_kept=not_kept(root),
        absent=tuple(name for name in old.names if not (rt.settings.effective_archive_dir / name).is_file()),
        unreadable=tuple(str(path.name) for path in what_was_set_aside(root)),
        acknowledged=tuple(path.stat().st_size for path in acknowledged(root)),
        **counted,
    )


async def _count(session: ReadSession, kind: int | None) -> int:
    wanted = select(func.count()).select_from(ClickEvent)
    return await session.scalar(wanted if kind is None else wanted.where(ClickEvent.kind == kind)) or 0
