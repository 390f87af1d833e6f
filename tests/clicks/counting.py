"""Counting by hand: each event on its own, without our roll-ups, sketches and calendar."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from refract.clicks.ingest.ingester import Ingester
from refract.clicks.languages import UNKNOWN_LANGUAGE
from refract.clicks.models import ClickEvent
from refract.clicks.queries import select_events
from refract.clicks.rollups.breakdowns import DEFAULT_DOMAIN, NO_RULE
from refract.clicks.spool.format import LINK_CLICK, PREFETCH, PRIVATE, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.core.clock import EPOCH
from refract.core.ip_addresses import get_network
from refract.core.runtime import Runtime

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
VALUES: dict[str, Callable[[ClickEvent], str | None]] = {
    "referrers": lambda event: event.referrer_host,
    "countries": lambda event: event.country_code,
    "devices": lambda event: event.device,
    "browsers": lambda event: event.browser,
    "systems": lambda event: event.system,
    "campaigns": lambda event: event.utm_campaign,
    "nodes": lambda event: event.node,
    "sources": lambda event: event.utm_source,
    "terms": lambda event: event.utm_term,
    "domains": lambda event: event.domain or DEFAULT_DOMAIN,
    "languages": lambda event: event.language or UNKNOWN_LANGUAGE,
    "rules": lambda event: event.rule or NO_RULE,
}


class Sum(NamedTuple):
    clicks: int
    uniques: int
    bots: int


def click(
    target: int,
    at: datetime,
    *,
    agent: str = FIREFOX,
    host: str = "198.51.100.7",
    shy: bool = False,
    fetch: bool = False,
) -> bytes:
    flags = (PRIVATE if shy else 0) | (PREFETCH if fetch else 0)
    ns = (at - EPOCH) // timedelta(microseconds=1) * 1000
    return encode_frame(
        LINK_CLICK,
        target,
        ns,
        flags,
        get_network(host),
        agent.encode(),
        b"https://a.example/b",
        b"utm_campaign=c&utm_term=t",
    )


async def stored(rt: Runtime, frames: Sequence[bytes], node: str = "here") -> None:
    """Send clicks through spool and ingester into the database."""
    spool = SpoolWriter(rt.settings.effective_spool_dir, node=node)
    for begin in range(0, len(frames), 100):
        assert spool.append(list(frames[begin : begin + 100])) == len(frames[begin : begin + 100])
    spool.close()
    await Ingester(rt).apply_all()


async def events_of(rt: Runtime, *targets: int) -> list[ClickEvent]:
    """Return the clicks on these links with all their facts."""
    wanted = ClickEvent.target_id.in_(targets), ClickEvent.kind == LINK_CLICK
    async with rt.db.read() as session:
        return [
            ClickEvent(**row._mapping)
            for row in await session.execute(select_events().where(*wanted))
        ]


def between(events: Iterable[ClickEvent], begin: datetime, end: datetime) -> list[ClickEvent]:
    return [event for event in events if begin <= event.at < end]


def count(events: Iterable[ClickEvent]) -> Sum:
    people, bots, visitors = 0, 0, set()
    for event in events:
        people, bots = people + (not event.bot), bots + event.bot
        if not event.bot and not event.private:
            visitors.add((event.at.date(), event.network, event.user_agent))
    return Sum(people, len(visitors), bots)


def local_key(at: datetime, zone: ZoneInfo, granularity: str) -> Any:
    local = at.astimezone(zone)
    if granularity == "hour":
        return local.date(), local.hour, local.utcoffset()
    return {
        "day": local.date(),
        "week": local.isocalendar()[:2],
        "month": (local.year, local.month),
    }[granularity]


def by_key(events: Iterable[ClickEvent], zone: ZoneInfo, granularity: str) -> dict[Any, Sum]:
    groups: dict[Any, list[ClickEvent]] = defaultdict(list)
    for event in events:
        groups[local_key(event.at, zone, granularity)].append(event)
    return {key: count(group) for key, group in groups.items()}


def by_value(events: Iterable[ClickEvent], dimension: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for event in events:
        value = VALUES[dimension](event)
        if not event.bot and not event.private and value:
            found[value] += 1
    return found


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
