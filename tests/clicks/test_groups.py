"""Sums over all links of a user equal a count by hand, whatever happens to links and owners."""

import random
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from sqlalchemy import func, select

from refract.clicks import stats
from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.jobs import BuildGroup, DropGroup, enqueue_group_build
from refract.clicks.jobs import build_group as build_group_job
from refract.clicks.jobs import drop_group as drop_group_job
from refract.clicks.models import ClickRollup, OpenRollup
from refract.clicks.personal_data import erase_personal_data
from refract.clicks.rollups import compaction, group_builder
from refract.clicks.rollups.granularity import to_datetime, to_seconds
from refract.clicks.rollups.group_builder import GroupBuild, build_group
from refract.clicks.rollups.groups import load_group
from refract.clicks.rollups.state import RollupProgress, load_progress
from refract.clicks.rollups.updater import RollupUpdater
from refract.clicks.spool.format import LINK_CLICK, PREFETCH, PRIVATE
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.stats import Granularity, StatsQuery
from refract.clicks.stats import service as stats_service
from refract.clicks.stats.queries import MIN_CLICK_TIME
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion
from refract.jobs.models import Job
from refract.links import personal_data as link_data
from refract.links.models import USER_LINKS, LinkGroup
from refract.links.service import (
    add_owner,
    delete_link,
    purge_links,
    remove_owner,
    transfer_link,
)
from refract.links.service.people import record_group_changes
from tests import make
from tests.clicks import traffic
from tests.clicks.counting import stored
from tests.clicks.traffic import Counted, SaltModel, Sent
from tests.client import by_key
from tests.machine import Machine, run_machine

NODE = "here"
HOUR, DAY = 3600, 86_400
LINKS = 4
ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns")
AGES = st.one_of(
    st.integers(0, 2 * HOUR),
    st.integers(0, 2 * DAY),
    st.integers(0, 45 * DAY),
    st.sampled_from([400 * DAY, 2000 * DAY]),
)
CLICK = st.tuples(
    AGES,
    st.integers(0, 2 * LINKS),
    st.sampled_from([0, 0, 0, PREFETCH, PRIVATE]),
    st.sampled_from(traffic.NETWORKS),
    st.sampled_from(list(traffic.AGENTS)),
    st.sampled_from(list(traffic.REFERRERS)),
    st.sampled_from(list(traffic.CAMPAIGNS)),
)
CLICKS = st.lists(CLICK, min_size=1, max_size=30)
PEOPLE = st.integers(0, 1)


class Owners(Machine):
    """Clicks, changes of owners, and roll-ups of all their links, begun at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir=self.rt.settings.data_dir))
        self.ingesters = [Ingester(self.rt, self.root) for _ in range(2)]
        self.counted: list[Counted] = []
        self.salts = SaltModel()
        self.run(self._make_people())

    async def _make_people(self) -> None:
        async with self.rt.db.write() as session:
            self.people = [await make.person(session, self.rt, name) for name in ("ada", "bob")]
            self.links = [
                (await make.link(session, self.rt, self.people[number % 2])).id
                for number in range(LINKS)
            ]
        self.primary = [number % 2 for number in range(LINKS)]
        self.owners = [{number} for number in self.primary]

    @property
    def now(self) -> int:
        return to_seconds(self.clock.now())

    @rule(clicks=CLICKS, which=PEOPLE)
    def clicks_are_stored(self, clicks: list[tuple[Any, ...]], which: int) -> None:
        sent = [
            Sent(self.now - age, self.links[link % len(self.links)], LINK_CLICK, *rest)
            for age, link, *rest in clicks
        ]
        spool = SpoolWriter(self.root, node=NODE)
        spool.append([click.framed() for click in sent])
        spool.close()
        assert self.run(self.ingesters[which].apply_all()) == len(sent)
        self.counted += [
            Counted(click, click.at, self.salts.of(click.at // DAY, self.now)) for click in sent
        ]

    @rule(seconds=st.sampled_from([900, HOUR, 5 * HOUR, DAY, 31 * DAY]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def hours_are_closed(self) -> None:
        self.run(compaction.close_hours(self.rt))

    @rule()
    def old_rollups_go(self) -> None:
        self.run(compaction.drop_expired_rollups(self.rt))

    @rule(link=st.integers(0, 2 * LINKS), to=PEOPLE, is_transfer=st.booleans())
    def an_owner_changes(self, link: int, to: int, is_transfer: bool) -> None:
        """Transfer a link, or add or remove a co-owner."""
        self.run(self._change_owner(link % len(self.links), to, is_transfer=is_transfer))

    async def _change_owner(self, link: int, to: int, *, is_transfer: bool) -> None:
        link_id, person, now = self.links[link], self.people[to], self.clock.now()
        who = make.who(self.people[self.primary[link]])
        async with self.rt.db.write() as session:
            if to == self.primary[link]:
                return
            if is_transfer:
                await transfer_link(session, who, link_id, person.email or "", now)
                self.owners[link].add(to)
                self.primary[link] = to
            elif to not in self.owners[link]:
                await add_owner(session, who, link_id, person.email or "", now)
                self.owners[link].add(to)
            else:
                await remove_owner(session, who, link_id, person.id, now)
                self.owners[link].remove(to)

    @precondition(lambda self: len(self.links) < 2 * LINKS)
    @rule(which=PEOPLE)
    def a_link_is_made(self, which: int) -> None:
        async def create(session: WriteSession) -> None:
            self.links.append((await make.link(session, self.rt, self.people[which])).id)

        self.run(self._write(create))
        self.primary.append(which)
        self.owners.append({which})

    @rule(which=PEOPLE)
    def rollups_are_built(self, which: int) -> None:
        self.run(self._request(which))
        self.run(build_group(self.rt, USER_LINKS, self.people[which].id))
        assert self.run(self._is_grouped(which))
        if self.counted:
            begin = max(MIN_CLICK_TIME, self.run(self._state()).months_from)
            self._compare_breakdowns(which, begin, self.now // 900 * 900 + 900, ["devices"])

    @rule(which=PEOPLE, slices=st.integers(1, 12), anew=st.booleans(), clicks=CLICKS)
    def clicks_arrive_meanwhile(
        self, which: int, slices: int, anew: bool, clicks: list[tuple[Any, ...]]
    ) -> None:
        if anew:
            self.run(self._change_owner(0, which, is_transfer=True))
        self.run(self._request(which))
        build = GroupBuild(USER_LINKS, self.people[which].id)
        for _ in range(slices):
            self.run(self._write(build.add_slice))
        self.clicks_are_stored(clicks, which)

    async def _write(self, step: Any) -> None:
        async with self.rt.db.write() as session:
            await step(session)

    async def _request(self, which: int) -> None:
        async def request(session: WriteSession) -> None:
            await enqueue_group_build(session, self.rt, USER_LINKS, self.people[which].id)

        await self._write(request)

    async def _is_grouped(self, which: int) -> bool:
        async with self.rt.db.read() as session:
            group = await load_group(session, USER_LINKS, self.people[which].id)
        return group is not None and group.is_complete

    @precondition(lambda self: self.counted)
    @rule(zone=st.sampled_from(ZONES), back=st.integers(1, 60 * 96))
    def statistics_are_read(self, zone: str, back: int) -> None:
        assert self.run(reconcile(self.rt, self.root)).drift == []
        state = self.run(self._state())
        end = self.now // 900 * 900 + 900
        ranges = [
            (end - back * 900, end),
            (state.quarters_from, end),
            (state.days_from, state.quarters_from),
            (state.months_from, state.days_from),
        ]
        for which in range(len(self.people)):
            for since, until in ranges:
                begin = max(since, MIN_CLICK_TIME, state.months_from)
                if begin < until and (begin >= state.quarters_from or begin == since):
                    self._compare_breakdowns(which, begin, until)
            for begin in (max(end - back * 900, state.quarters_from), MIN_CLICK_TIME):
                asked = StatsQuery(to_datetime(begin), to_datetime(end), tz=zone)
                self._compare_series(which, asked, state)

    def _clicks(self, which: int, begin: int, end: int) -> list[Counted]:
        mine = {self.links[link] for link, owners in enumerate(self.owners) if which in owners}
        return [
            click for click in self.counted if click.sent.target in mine and begin <= click.at < end
        ]

    def _compare_series(self, which: int, asked: StatsQuery, state: RollupProgress) -> None:
        found = self.run(self._overview(which, asked))
        ends = [*(to_seconds(point.at) for point in found.series[1:]), to_seconds(found.end)]
        known = [
            (point, end) for point, end in zip(found.series, ends, strict=True) if not point.no_data
        ]
        for point, end in known:
            wanted = traffic.counts(self._clicks(which, to_seconds(point.at), end))
            assert (point.clicks, point.bots) == (wanted.people, wanted.bots)
            if to_seconds(point.at) >= state.days_from:
                assert point.uniques == wanted.uniques
        if known:
            begin, end = to_seconds(known[0][0].at), known[-1][1]
            clicks = self._clicks(which, begin, end)
            wanted = traffic.counts(clicks)
            assert (found.totals.clicks, found.totals.bots) == (wanted.people, wanted.bots)
            assert begin < state.days_from or found.totals.uniques == wanted.uniques
            assert [(link.id, link.clicks) for link in found.links] == _rank(clicks)

    def _compare_breakdowns(
        self, which: int, begin: int, end: int, dimensions: Sequence[str] = stats.DIMENSIONS
    ) -> None:
        clicks = self._clicks(which, begin, end)
        wanted, people = traffic.breakdowns(clicks, NODE), traffic.counts(clicks).people
        asked = StatsQuery(to_datetime(begin), to_datetime(end))
        for dimension in dimensions:
            found = self.run(self._breakdown(which, dimension, asked))
            assert {share.value: share.clicks for share in found.items} == wanted[dimension]
            total = sum(wanted[dimension].values())
            assert (found.other, found.total, found.without) == (0, total, people - total)
            assert [(link.id, link.clicks) for link in found.links] == _rank(clicks)

    async def _state(self) -> RollupProgress:
        async with self.rt.db.read() as session:
            return await load_progress(session)

    async def _overview(self, which: int, asked: StatsQuery) -> stats.StatsResult:
        async with self.rt.db.read() as session:
            user_id = self.people[which].id
            return await stats.get_overview(session, user_id, asked, self.clock.now())

    async def _breakdown(self, which: int, dimension: str, asked: StatsQuery) -> stats.Breakdown:
        async with self.rt.db.read() as session:
            return await stats.get_overview_breakdown(
                session, self.people[which].id, dimension, asked, self.clock.now(), limit=1000
            )


def _rank(clicks: list[Counted]) -> list[tuple[int, int]]:
    people: dict[int, int] = {}
    for click in clicks:
        if not click.bot:
            people[click.sent.target] = people.get(click.sent.target, 0) + 1
    return sorted(people.items(), key=lambda pair: (-pair[1], pair[0]))


def test_sums_of_a_user_equal_a_count_by_hand(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_builder, "LINKS_PER_SLICE", 1)
    (tmp_path / "data").mkdir()
    run_machine(Owners, database, tmp_path / "data", examples=8, steps=10)


async def _store(rt: Runtime, links: Sequence[int], chance: random.Random, number: int) -> None:
    """Store clicks of the last hours, days, months and years."""
    now, ages = to_seconds(rt.clock.now()), (HOUR, 2 * DAY, 45 * DAY, 400 * DAY, 700 * DAY)
    sent = [
        Sent(
            now - chance.randrange(chance.choice(ages)),
            chance.choice(links),
            LINK_CLICK,
            chance.choice([0, 0, 0, PREFETCH, PRIVATE]),
            chance.choice(traffic.NETWORKS),
            chance.choice(list(traffic.AGENTS)),
            chance.choice(list(traffic.REFERRERS)),
            chance.choice(list(traffic.CAMPAIGNS)),
        )
        for _ in range(number)
    ]
    await stored(rt, [click.framed() for click in sent])


async def _read_all(rt: Runtime, user_id: int) -> list[Any]:
    """Return all statistics of a user."""
    now, found = rt.clock.now(), list[Any]()
    for begin in (now - timedelta(days=3), now - timedelta(days=800)):
        for zone in ZONES:
            async with rt.db.read() as session:
                asked = StatsQuery(begin, now, Granularity.DAY, zone, compare=True)
                found.append(await stats.get_overview(session, user_id, asked, now))
        for dimension in stats.DIMENSIONS:
            async with rt.db.read() as session:
                asked = StatsQuery(begin, now)
                found.append(
                    await stats.get_overview_breakdown(session, user_id, dimension, asked, now)
                )
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_clicks_that_arrive_during_a_build_are_counted_once(
    rt: Runtime,
    clock: ManualClock,
    ada: User,
    bob: User,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_builder, "LINKS_PER_SLICE", 2)
    chance = random.Random(seed)
    async with rt.db.write() as session:
        links = [
            (await make.link(session, rt, chance.choice((ada, ada, bob)))).id for _ in range(6)
        ]
        await enqueue_group_build(session, rt, USER_LINKS, ada.id)
    await _store(rt, links, chance, 60)
    await compaction.close_hours(rt)
    clock.advance(40 * DAY)
    await _store(rt, links, chance, 60)
    await compaction.close_hours(rt)
    await compaction.drop_expired_rollups(rt)
    build = GroupBuild(USER_LINKS, ada.id)
    for _ in range(4):
        for _ in range(chance.randrange(12)):
            async with rt.db.write() as session:
                await build.add_slice(session)
        await _store(rt, links, chance, 30)
    clock.advance(3 * HOUR)
    await compaction.close_hours(rt)
    await build_group(rt, USER_LINKS, ada.id)
    await _store(rt, links, chance, 30)

    assert (await reconcile(rt)).drift == []
    by_group = await _read_all(rt, ada.id)
    async with rt.db.write() as session:
        await record_group_changes(session, [ada.id])  # read link by link from here on
    assert by_group == await _read_all(rt, ada.id)


async def _load_jobs(rt: Runtime) -> list[dict[str, Any]]:
    async with rt.db.read() as session:
        jobs = await session.scalars(select(Job).where(Job.kind.like("analytics.%_group")))
        return [job.payload for job in jobs]


async def test_a_look_at_many_clicked_links_starts_a_build(
    rt: Runtime, client: AsyncClient, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rt.db.write() as session:
        links = [(await make.link(session, rt, ada)).id for _ in range(4)]
        headers = by_key(await make.key(session, rt, ada, *make.OWN))
    await _store(rt, links, random.Random(7), 40)
    before = (await client.get("/api/v1/stats", headers=headers)).json()
    assert await _load_jobs(rt) == []  # few rows are added up when asked for

    monkeypatch.setattr(stats_service, "MAX_ROWS", 3)
    for path in ("/api/v1/stats", "/api/v1/stats/countries", "/api/v1/stats"):
        assert (await client.get(path, headers=headers)).status_code == 200
    (payload,) = await _load_jobs(rt)
    await build_group_job(rt, BuildGroup(**payload))

    assert (await client.get("/api/v1/stats", headers=headers)).json() == before
    async with rt.db.read() as session:
        found = await stats.get_overview(session, ada.id, StatsQuery(), rt.clock.now())
    assert found.totals.clicks == before["totals"]["clicks"] > 0
    assert not found.is_costly


async def _count_rows(rt: Runtime, user_id: int) -> int:
    rows = select(func.count()).where(ClickRollup.target_id == user_id)
    still_open = select(func.count()).where(OpenRollup.target_id == user_id)
    groups = select(func.count()).where(LinkGroup.id == user_id)
    async with rt.db.read() as session:
        return sum([await session.scalar(query) or 0 for query in (rows, still_open, groups)])


async def test_sums_of_a_user_go_with_the_account(rt: Runtime, ada: User, bob: User) -> None:
    async with rt.db.write() as session:
        links = [(await make.link(session, rt, owner)).id for owner in (ada, ada, bob)]
        for owner in (ada, bob):
            await enqueue_group_build(session, rt, USER_LINKS, owner.id)
    await _store(rt, links, random.Random(3), 20)
    await compaction.close_hours(rt)
    await _store(rt, links, random.Random(4), 20)
    for owner in (ada, bob):
        await build_group(rt, USER_LINKS, owner.id)
    assert await _count_rows(rt, ada.id) > 10

    async with rt.db.write() as session:
        leaving = await session.get_one(User, ada.id)
        await erase_personal_data(session, rt, AccountDeletion(leaving, heir=bob))
        await link_data.erase_personal_data(session, rt, AccountDeletion(leaving, heir=bob))
    payload = next(job for job in await _load_jobs(rt) if job["group_id"] == ada.id)
    await drop_group_job(rt, DropGroup(**payload))
    await build_group(rt, USER_LINKS, bob.id)

    assert await _count_rows(rt, ada.id) == 0
    assert (await reconcile(rt)).drift == []
    async with rt.db.read() as session:
        asked = StatsQuery(rt.clock.now() - timedelta(days=800))
        found = await stats.get_overview(session, bob.id, asked, rt.clock.now())
    assert {link.id for link in found.links} == set(links)


async def test_a_purge_makes_sums_invalid(rt: Runtime, clock: ManualClock, ada: User) -> None:
    async with rt.db.write() as session:
        links = [(await make.link(session, rt, ada)).id for _ in range(2)]
        await enqueue_group_build(session, rt, USER_LINKS, ada.id)
    await _store(rt, links, random.Random(5), 30)
    await build_group(rt, USER_LINKS, ada.id)
    async with rt.db.write() as session:
        await delete_link(session, make.who(ada), links[0], clock.now())
    clock.advance(DAY)
    async with rt.db.write() as session:
        assert await purge_links(session, clock.now(), timedelta(seconds=10)) == 1

    async with rt.db.read() as session:
        group = await load_group(session, USER_LINKS, ada.id)
    async with rt.db.read() as session:
        asked = StatsQuery(clock.now() - timedelta(days=800))
        found = await stats.get_overview(session, ada.id, asked, clock.now())
    assert group is not None
    assert not group.is_complete
    assert [link.id for link in found.links] == links[1:]


async def test_a_build_that_advances_invalidates_prepared_rows(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    """Rows of a run are prepared before its transaction, in which a group may be further."""
    async with rt.db.write() as session:
        link_id = (await make.link(session, rt, ada)).id
        await enqueue_group_build(session, rt, USER_LINKS, ada.id)
    quarter = to_seconds(clock.now()) // 900 * 900
    updater = RollupUpdater()

    def count_one() -> dict[RollupSlot, RollupDelta]:
        delta = RollupDelta()
        delta.people = 1
        return {(link_id, LINK_CLICK, quarter): delta}

    async with rt.db.write() as session:
        await GroupBuild(USER_LINKS, ada.id).add_slice(session)
    async with rt.db.write() as session:
        await updater.add_clicks(session, count_one())
    async with rt.db.read() as reader:
        await updater.prepare_clicks(reader, count_one())
    await build_group(rt, USER_LINKS, ada.id)
    async with rt.db.write() as session:
        await updater.add_clicks(session, count_one())

    async with rt.db.read() as reader:
        found = await stats.get_overview(reader, ada.id, StatsQuery(), clock.now())
    assert [(link.id, link.clicks) for link in found.links] == [(link_id, 2)]
    assert (await reconcile(rt)).groups == 0
