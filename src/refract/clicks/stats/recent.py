"""The clicks of the last half hour, one by one: what a live feed shows of them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func

from refract.clicks.queries import EVENT_COLUMNS, select_events
from refract.clicks.stats.event_counts import match_targets
from refract.clicks.stats.filters import VALUE_EXPRESSIONS, ClickFilter, match_events
from refract.clicks.stats.scope import StatsScope
from refract.core.db.session import ReadSession

RECENT_MINUTES: Final = 30
MAX_RECENT: Final = 10


@dataclass(frozen=True, slots=True)
class RecentClick:
    """A click without anything that tells who it was."""

    at: datetime
    link_id: int
    country: str
    device: str
    source: str


async def load_recent_clicks(
    session: ReadSession, scope: StatsScope, chosen: ClickFilter, now: datetime
) -> tuple[list[RecentClick], int]:
    """Return the latest clicks of people, newest first, and how many there were. Two queries.

    Bounded in time, so that only events of that time are read, however many links there are.
    """
    at = EVENT_COLUMNS["at"]
    conditions = (
        match_targets(scope),
        EVENT_COLUMNS["kind"] == scope.kind,
        EVENT_COLUMNS["bot"].is_(False),
        at >= now - timedelta(minutes=RECENT_MINUTES),
        match_events(chosen),
    )
    values = [VALUE_EXPRESSIONS[name] for name in ("countries", "devices", "referrers")]
    newest = (
        select_events(at, EVENT_COLUMNS["target_id"], *values)
        .where(*conditions)
        .order_by(at.desc())
        .limit(MAX_RECENT)
    )
    clicks = [RecentClick(*row) for row in await session.execute(newest)]
    count = await session.scalar(select_events(func.count()).where(*conditions))
    return clicks, count or 0
