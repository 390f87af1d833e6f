"""Statistics with none, one and two filters equal a count by hand, of clicks in the database and
in files, while clicks arrive and are archived.
"""

import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from refract.clicks import stats
from refract.clicks.archive import service as archive
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.rollups.breakdowns import DEFAULT_DOMAIN
from refract.clicks.rollups.granularity import to_seconds
from refract.clicks.spool.format import LINK_CLICK, PAGE_VIEW, PREFETCH, PRIVATE
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.stats import Granularity, StatsQuery
from refract.clicks.stats.filtered import FilteredStats
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.scope import (
    AccountScope,
    LinkScope,
    StatsScope,
    TaggedLinksScope,
    TeamLinksScope,
)
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.tags.queries import find_shared_tags
from tests import make
from tests.clicks import traffic
from tests.clicks.traffic import Sent

NODE = "here"
DAYS = 20
FLAGS = (0, 0, 0, 0, PREFETCH, PRIVATE, PRIVATE | PREFETCH)
KINDS = (LINK_CLICK, LINK_CLICK, LINK_CLICK, PAGE_VIEW)
PAIRS = [(), ("countries",), ("devices",), ("referrers", "devices"), ("countries", "browsers"),
         ("campaigns", "systems"), ("nodes", "countries"), ("domains",),
         ("domains", "devices"), ("languages",), ("languages", "campaigns"),
         ("rules",), ("rules", "domains")]  # fmt: skip


class Traffic:
    """Clicks on some links: most of them archived, some recent, some late."""

    def __init__(self, rt: Runtime, root: Path, links: list[int], seed: int) -> None:
        self.rt, self.root, self.links = rt, root, links
        self.chance = random.Random(seed)
        self.sent: list[Sent] = []
        self.ingester = Ingester(rt, root)

    async def happen(self, count: int, days: int) -> None:
        now, pick = to_seconds(self.rt.clock.now()), self.chance.choice
        clicks = [
            Sent(
                now - self.chance.randrange(1, days * traffic.DAY),
                pick(self.links),
                pick(KINDS),
                pick(FLAGS),
                pick(traffic.NETWORKS),
                pick(list(traffic.AGENTS)),
                pick(list(traffic.REFERRERS)),
                pick(list(traffic.CAMPAIGNS)),
                pick(traffic.DOMAINS),
                pick(list(traffic.LANGUAGES)),
                pick(traffic.RULES),
            )
            for _ in range(count)
        ]
        spool = SpoolWriter(self.root, node=NODE, segment_bytes=1 << 16)
        spool.append([click.framed() for click in clicks])
        spool.close()
        assert await self.ingester.apply_all() == count
        self.sent += clicks

    def pick_filter(self, dimensions: tuple[str, ...]) -> dict[str, str]:
        """Return values that some click of a person has."""
        while True:
            click = self.chance.choice(self.sent)
            values = {name: value_of(click, name) for name in dimensions}
            if (
                click.kind == LINK_CLICK
                and is_person(click)
                and all(values.values())
                and not click.flags & PRIVATE
            ):
                return values

    def match(self, links: list[int], values: dict[str, str], begin: int, end: int) -> list[Sent]:
        return [
            click
            for click in self.sent
            if click.target in links
            and click.kind == LINK_CLICK
            and begin <= click.at < end
            and (
                not values
                or (
                    not click.flags & PRIVATE
                    and all(value_of(click, name) == value for name, value in values.items())
                )
            )
        ]


def value_of(click: Sent, dimension: str) -> str:
    value = traffic.Counted(click, click.at, 0).value(dimension, NODE)
    return "bot" if dimension == "devices" and not is_person(click) else value


def is_person(click: Sent) -> bool:
    return not traffic.Counted(click, click.at, 0).bot


def count(clicks: list[Sent]) -> stats.ClickCounts:
    people = [click for click in clicks if is_person(click)]
    visitors = {
        (click.network, click.agent, click.at // traffic.DAY)
        for click in people
        if not click.flags & PRIVATE
    }
    return stats.ClickCounts(len(people), len(visitors), len(clicks) - len(people))


async def compare(
    traffic_: Traffic, scope: StatsScope, links: list[int], values: dict[str, str], zone: str
) -> None:
    """Compare totals, series, breakdowns and top links with a count by hand."""
    rt = traffic_.rt
    now = rt.clock.now()
    asked = StatsQuery(now - timedelta(days=DAYS - 3), now, Granularity.DAY, zone, compare=True)
    if values:
        source = FilteredStats(rt, scope, ClickFilter(values, DEFAULT_DOMAIN))
        found = await source.load_dashboard(asked, now, links=10)
    else:
        async with rt.db.read() as session:
            found = await stats.get_scope_dashboard(session, scope, asked, now, links=10)
    result, breakdowns = found.stats, found.breakdowns
    begin, end = to_seconds(result.begin), to_seconds(result.end)
    clicks = traffic_.match(links, values, begin, end)
    assert result.totals == count(clicks)
    before = count(traffic_.match(links, values, 2 * begin - end, begin))
    assert result.previous is not None
    assert (result.previous.clicks, result.previous.uniques, result.previous.bots) == (
        before.clicks,
        before.uniques,
        before.bots,
    )
    edges = [*(to_seconds(point.at) for point in result.series), end]
    for point, (since, until) in zip(result.series, pairwise(edges), strict=True):
        wanted = count(traffic_.match(links, values, since, until))
        assert (point.clicks, point.uniques, point.bots) == (
            wanted.clicks,
            wanted.uniques,
            wanted.bots,
        )
    told = [click for click in clicks if is_person(click) and not click.flags & PRIVATE]
    for name in stats.DIMENSIONS:
        by_value = Counter(value_of(click, name) for click in told)
        by_value.pop("", None)
        assert {item.value: item.clicks for item in breakdowns[name].items} == by_value
        assert breakdowns[name].total == sum(by_value.values())
    if not isinstance(scope, LinkScope):
        people = Counter(click.target for click in clicks if is_person(click))
        assert {link.id: link.clicks for link in result.links} == people


@pytest.mark.parametrize("seed", [1, 2])
async def test_figures_with_filters_equal_a_count_by_hand(
    rt: Runtime, clock: ManualClock, ada: User, bob: User, tmp_path: Path, seed: int
) -> None:
    async with rt.db.write() as session:
        mine = [(await make.link(session, rt, ada, tags=["Spring"])).id for _ in range(2)]
        plain = [(await make.link(session, rt, ada)).id for _ in range(2)]
        crew = await make.team(session, rt, ada, bob)
        ours = (await make.link(session, rt, ada, team="crew")).id
        foreign = (await make.link(session, rt, bob, tags=["Spring"])).id
    async with rt.db.read() as reader:
        tag = (await find_shared_tags(reader, {"spring"}))["spring"]
    sent = Traffic(rt, tmp_path, [*mine, *plain, ours, foreign], seed)

    async def compare_scopes(pairs: list[tuple[str, ...]]) -> None:
        for number, dimensions in enumerate(pairs):
            zone = ("UTC", "Asia/Kathmandu", "America/St_Johns")[number % 3]
            values = sent.pick_filter(dimensions)
            await compare(sent, LinkScope(mine[0]), [mine[0]], values, zone)
            await compare(sent, AccountScope(ada.id), [*mine, *plain, ours], values, zone)
            await compare(sent, TaggedLinksScope(ada.id, tag.id), mine, values, zone)
            await compare(sent, TeamLinksScope(crew.id), [ours], values, zone)

    await sent.happen(900, DAYS)  # all of them in the database
    await compare_scopes(PAIRS[2:4])
    await archive.archive_old_days(rt)
    await compare_scopes(PAIRS[2:4])
    await sent.happen(60, DAYS)  # late ones: their days have files already
    await compare_scopes(PAIRS)
    await archive.archive_old_days(rt)  # merges the files of these days
    await sent.happen(60, 2)
    await compare_scopes(PAIRS[2:4])
