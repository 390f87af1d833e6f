"""What the client saw, what was done to the server, what the database holds.

Joined, once everything is drained.

An acknowledged click is a redirect that was received; an acknowledged write a 2xx that was
received. *Lost*: acknowledged and not in the database. *Duplicate*: there twice. *In flight*:
there, though the client was cut off before it heard of it, which is fine. *Unexplained*: there, and
nobody asked for it, or was told no.
"""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from proofs.harness.journal import Kind, Outcome, Record
from proofs.harness.nemesis import Fault
from refract.clicks.models import ClickEvent
from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.rollups.granularity import DAY, start_of, to_datetime, to_seconds
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import StatsQuery, get_link_stats
from refract.clicks.verify import Reconciliation, reconcile
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime
from refract.links.models import Link, LinkTotals

STUCK_SECONDS = 30.0


class NotDrained(Exception):
    """Clicks stayed in the spool although nothing was in the ingester's way."""


@dataclass(frozen=True, slots=True)
class Tally:
    """One kind of acknowledged thing, joined."""

    acknowledged: int
    stored: int
    lost: int
    duplicates: int
    in_flight: int
    unexplained: int
    examples: tuple[int, ...]


def tally(records: Iterable[Record], kind: Kind, stored: Counter[int]) -> Tally:
    """Join the journal with how often each id was found in the database."""
    acknowledged: set[int] = set()
    unanswered: set[int] = set()
    for record in records:
        if record.kind != kind:
            continue
        if record.acknowledged:
            acknowledged.add(record.id)
        elif record.outcome in (Outcome.CUT, Outcome.CROSSED, Outcome.LATE):
            unanswered.add(record.id)
    lost = acknowledged - stored.keys()
    duplicates = {number for number, times in stored.items() if times > 1}
    beyond = stored.keys() - acknowledged
    unexplained = beyond - unanswered
    return Tally(
        acknowledged=len(acknowledged),
        stored=stored.total(),
        lost=len(lost),
        duplicates=len(duplicates),
        in_flight=len(beyond & unanswered),
        unexplained=len(unexplained),
        examples=tuple(sorted(lost | duplicates | unexplained)[:5]),
    )


async def drained(rt: Runtime) -> Reconciliation:
    """Wait until the running ingester has applied everything.

    It may take as long as it moves on.
    """
    best, moved = -1, time.monotonic()
    while True:
        try:
            figures = await reconcile(rt)
        except Unavailable:
            await asyncio.sleep(0.5)
            continue
        if not figures.pending:
            return figures
        if figures.stored > best:
            best, moved = figures.stored, time.monotonic()
        if time.monotonic() > moved + STUCK_SECONDS:
            raise NotDrained(
                f"{figures.pending} clicks wait, and nothing has been stored for"
                f" {STUCK_SECONDS:g} s"
            )
        await asyncio.sleep(0.2)


async def stored_clicks(rt: Runtime) -> Counter[int]:
    """How often each click is in the database, by the id it carried."""
    found: Counter[int] = Counter()
    async with rt.db.read() as session:
        content = EVENT_COLUMNS["utm_content"]
        for marker in await session.scalars(select_events(content)):
            if marker is None:
                continue
            found[int(marker)] += 1
    return found


async def stored_links(rt: Runtime, prefix: str) -> Counter[int]:
    """How often each written link is there, by the id at the end of its destination."""
    found: Counter[int] = Counter()
    async with rt.db.read() as session:
        for destination in await session.scalars(
            select(Link.destination).where(Link.destination.startswith(prefix))
        ):
            found[int(destination.removeprefix(prefix))] += 1
    return found


async def totals_that_differ(rt: Runtime) -> int:
    """Links whose counter is not the number of their clicks."""
    async with rt.db.read() as session:
        counted = (
            select(ClickEvent.target_id, func.count())
            .where(ClickEvent.kind == LINK_CLICK)
            .group_by(ClickEvent.target_id)
        )
        events = {row[0]: row[1] for row in await session.execute(counted)}
        rows = await session.execute(
            select(LinkTotals.link_id, LinkTotals.total_clicks + LinkTotals.bot_clicks)
        )
        totals = {row[0]: row[1] for row in rows if row[1]}
    return sum(1 for link in events.keys() | totals.keys() if events.get(link) != totals.get(link))


async def rollups_that_differ(rt: Runtime) -> int:
    """Count the links and UTC days whose statistics differ from their clicks, people and bots
    apart.
    """
    async with rt.db.read() as session:
        found = await session.execute(
            select(ClickEvent.target_id, ClickEvent.kind, ClickEvent.at, ClickEvent.bot)
        )
        events = Counter((row.target_id, row.kind, f"{row.at:%Y-%m-%d}", row.bot) for row in found)
        oldest = await session.scalar(select(func.min(ClickEvent.at))) or rt.clock.now()
    first = to_datetime(start_of(DAY, to_seconds(oldest)))
    asked = StatsQuery(first, to_datetime(to_seconds(rt.clock.now()) // 900 * 900 + 900))
    counted: Counter[tuple[int, int, str, bool]] = Counter()
    for target, kind in {(target, kind) for target, kind, _, _ in events}:
        async with rt.db.read() as session:
            for point in (
                await get_link_stats(session, target, asked, rt.clock.now(), kind=kind)
            ).series:
                day = f"{point.at:%Y-%m-%d}"
                counted[target, kind, day, False] += point.clicks
                counted[target, kind, day, True] += point.bots
    return sum(1 for key in events.keys() | counted.keys() if events[key] != counted[key])


def mid_request(faults: Sequence[Fault], records: Iterable[Record]) -> int:
    """How many faults cut somebody off.

    A request sent before, and ended by it without its answer.
    """
    cuts = [(record.began, record.ended) for record in records if record.cut]
    return sum(
        1
        for fault in faults
        if any(began <= fault.until and fault.at <= ended for began, ended in cuts)
    )


def serving_again(faults: Sequence[Fault], records: Iterable[Record]) -> list[float]:
    """After each fault, the seconds until somebody who asked after it had an answer."""
    answered = sorted(
        (record.began, record.ended) for record in records if record.outcome == Outcome.ANSWERED
    )
    begins = [began for began, _ in answered]
    waits = []
    for fault in faults:
        first = bisect_left(begins, fault.until)
        soon = answered[
            first : first + 500
        ]  # the first to ask need not be the first to be answered
        waits.append(min((ended for _, ended in soon), default=float("inf")) - fault.until)
    return waits


def spread(values: Sequence[float]) -> str:
    """A distribution in a few words."""
    if not values:
        return "none"
    ordered = sorted(values)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.9, 0.99)]
    return f"median {at[0]:.3f}, p90 {at[1]:.3f}, p99 {at[2]:.3f}, most {ordered[-1]:.3f} s"


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0
