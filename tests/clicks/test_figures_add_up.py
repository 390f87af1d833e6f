"""Statistics equal a count by hand, for any traffic and any interruption, on three databases."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from refract.clicks import stats
from refract.clicks.ingest import salts
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.rollups import compaction, pack_updates
from refract.clicks.rollups.granularity import to_datetime, to_seconds
from refract.clicks.rollups.packs import MAX_PACK_BYTES
from refract.clicks.rollups.state import RollupProgress, load_progress
from refract.clicks.spool.format import ENTRY_CLICK, LINK_CLICK, PREFETCH, PRIVATE
from refract.clicks.spool.writer import SpoolWriter, format_segment_name
from refract.clicks.stats import Granularity, StatsQuery
from refract.clicks.stats.queries import MIN_CLICK_TIME
from refract.clicks.verify import reconcile
from tests.clicks import traffic
from tests.clicks.traffic import Counted, SaltModel, Sent
from tests.machine import Machine, run_machine

NODE = "here"
TARGETS = (7, 8)
KINDS = (LINK_CLICK, ENTRY_CLICK)
HOUR, DAY = 3600, 86_400
ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Auckland")
AGES = st.one_of(
    st.integers(0, 2 * HOUR),
    st.integers(0, 2 * DAY),
    st.integers(0, 45 * DAY),
    st.sampled_from([400 * DAY, 2000 * DAY]),
    st.sampled_from([-30, -HOUR]),
)
CLICK = st.tuples(
    AGES,
    st.sampled_from(TARGETS),
    st.sampled_from(KINDS),
    st.sampled_from([0, 0, 0, PREFETCH, PRIVATE, PRIVATE | PREFETCH]),
    st.sampled_from(traffic.NETWORKS),
    st.sampled_from(list(traffic.AGENTS)),
    st.sampled_from(list(traffic.REFERRERS)),
    st.sampled_from(list(traffic.CAMPAIGNS)),
    st.sampled_from(traffic.DOMAINS),
)


class Figures(Machine):
    """Clicks, torn spools, restarted ingesters, closed hours and dropped roll-ups, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir=self.rt.settings.data_dir))
        self.ingester = Ingester(self.rt, self.root)
        self.waiting: list[Sent] = []
        self.counted: list[Counted] = []
        self.salts = SaltModel()
        self.copies: list[Path] = []

    @property
    def now(self) -> int:
        return to_seconds(self.clock.now())

    @rule(clicks=st.lists(CLICK, min_size=1, max_size=40), torn=st.booleans(), copied=st.booleans())
    def happen(
        self,
        clicks: list[tuple[int, int, int, int, bytes, bytes, bytes, bytes, str]],
        torn: bool,
        copied: bool,
    ) -> None:
        sent = [Sent(self.now - click[0], *click[1:]) for click in clicks]
        spool = SpoolWriter(self.root, node=NODE, segment_bytes=4096)
        spool.append([click.framed() for click in sent])
        spool.close()
        if torn:
            last = max(spool.directory.glob("*.clicks"))
            last.write_bytes(last.read_bytes()[:-3])
            sent.pop()
        if copied:
            copy = Path(tempfile.mkdtemp(dir=self.rt.settings.data_dir)) / spool.directory.name
            shutil.copytree(spool.directory, copy)
            self.copies.append(copy)
        assert (spool.directory / format_segment_name(1)).exists()
        self.waiting += sent

    @rule(anew=st.booleans())
    def ingest(self, anew: bool) -> None:
        if anew:
            self.ingester = Ingester(self.rt, self.root)
        assert self.run(self.ingester.apply_all()) == len(self.waiting)
        self._count()

    def _count(self) -> None:
        for sent in self.waiting:
            at = self.now if sent.at > self.now + 60 else sent.at
            self.counted.append(Counted(sent, at, self.salts.of(at // DAY, self.now)))
        self.waiting = []

    @precondition(lambda self: self.copies and not self.waiting)
    @rule()
    def a_spool_comes_back(self) -> None:
        copy = self.copies.pop()
        shutil.copytree(
            copy, self.root / copy.name, dirs_exist_ok=True
        )  # still there when its only click was torn
        assert self.run(self.ingester.apply_all()) == 0

    @rule(seconds=st.sampled_from([60, 900, HOUR, 5 * HOUR, DAY, 3 * DAY, 31 * DAY]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def hours_are_closed(self) -> None:
        self.run(compaction.close_hours(self.rt))

    @rule()
    def old_figures_go(self) -> None:
        self.run(compaction.drop_expired_rollups(self.rt))

    @rule()
    def salts_are_destroyed(self) -> None:
        self.run(salts.destroy_expired_salts(self.rt))

    @precondition(lambda self: self.counted and not self.waiting)
    @rule(seed=st.integers(0, 1 << 30), zone=st.sampled_from(ZONES))
    def figures_are_read(self, seed: int, zone: str) -> None:
        chance = random.Random(seed)
        state = self.run(self._state())
        end = self.now // 900 * 900 + 900
        first = (
            max(state.quarters_from, MIN_CLICK_TIME, min(click.at for click in self.counted)) // 900
        )
        edges = sorted(chance.randint(first, max(first, end // 900)) * 900 for _ in range(2))
        ranges = [
            (edges[0], edges[1]),
            (state.quarters_from, end),
            (state.days_from, state.quarters_from),
            (state.months_from, state.days_from),
        ]
        for target in TARGETS:
            for kind in KINDS:
                for since, until in ranges:
                    oldest = max(since, MIN_CLICK_TIME)
                    if oldest < until:
                        self._compare_breakdowns(target, kind, oldest, until)
                begin = to_datetime(min(edges[0], end - 900))
                self._compare_series(target, kind, StatsQuery(begin, to_datetime(end), tz=zone))
                self._compare_series(
                    target, kind, StatsQuery(to_datetime(MIN_CLICK_TIME), to_datetime(end), tz=zone)
                )
                whole = StatsQuery(
                    to_datetime(MIN_CLICK_TIME), to_datetime(end), Granularity.MONTH, zone
                )
                self._compare_series(target, kind, whole)

    def _clicks(self, target: int, kind: int, begin: int, end: int) -> list[Counted]:
        mine = [
            click
            for click in self.counted
            if (click.sent.target, click.sent.kind) == (target, kind)
        ]
        return [click for click in mine if begin <= click.at < end]

    def _compare_series(self, target: int, kind: int, asked: StatsQuery) -> None:
        """Every point with data equals its clicks, and together they are the totals."""
        found = self.run(self._stats(target, kind, asked))
        state = self.run(self._state())
        ends = [*(to_seconds(point.at) for point in found.series[1:]), to_seconds(found.end)]
        known = [
            (point, end) for point, end in zip(found.series, ends, strict=True) if not point.no_data
        ]
        for point, end in known:
            wanted = traffic.counts(self._clicks(target, kind, to_seconds(point.at), end))
            assert (point.clicks, point.bots) == (wanted.people, wanted.bots)
            if to_seconds(point.at) >= state.days_from:
                assert point.uniques == wanted.uniques
        if known:
            begin, end = to_seconds(known[0][0].at), known[-1][1]
            wanted = traffic.counts(self._clicks(target, kind, begin, end))
            assert (found.totals.clicks, found.totals.bots) == (wanted.people, wanted.bots)
            assert begin < state.days_from or found.totals.uniques == wanted.uniques

    def _compare_breakdowns(self, target: int, kind: int, begin: int, end: int) -> None:
        clicks = self._clicks(target, kind, begin, end)
        wanted, people = traffic.breakdowns(clicks, NODE), traffic.counts(clicks).people
        asked = StatsQuery(to_datetime(begin), to_datetime(end))
        for dimension in stats.DIMENSIONS:
            found = self.run(self._breakdown(target, kind, dimension, asked))
            assert {share.value: share.clicks for share in found.items} == wanted[dimension]
            assert (found.other, found.total, found.without) == (
                0,
                sum(wanted[dimension].values()),
                people - found.total,
            )

    @precondition(lambda self: self.counted and not self.waiting)
    @rule(zone=st.sampled_from(ZONES))
    def a_dashboard_is_opened(self, zone: str) -> None:
        """The dashboard reads less than the single queries, with the same result."""
        for target in TARGETS:
            for kind in KINDS:
                asked = StatsQuery(tz=zone)
                found = self.run(self._dashboard(target, kind, asked))
                assert found.stats == self.run(self._stats(target, kind, asked))
                begin, end = to_seconds(found.stats.begin), to_seconds(found.stats.end)
                wanted = traffic.breakdowns(self._clicks(target, kind, begin, end), NODE)
                for dimension, shown in found.breakdowns.items():
                    assert {share.value: share.clicks for share in shown.items}.items() <= wanted[
                        dimension
                    ].items()
                    assert shown.total == sum(wanted[dimension].values())

    async def _state(self) -> RollupProgress:
        async with self.rt.db.read() as session:
            return await load_progress(session)

    async def _stats(self, target: int, kind: int, asked: StatsQuery) -> stats.StatsResult:
        async with self.rt.db.read() as session:
            return await stats.get_link_stats(session, target, asked, self.clock.now(), kind=kind)

    async def _dashboard(self, target: int, kind: int, asked: StatsQuery) -> stats.LinkDashboard:
        async with self.rt.db.read() as session:
            return await stats.get_dashboard(session, target, asked, self.clock.now(), kind=kind)

    async def _breakdown(
        self, target: int, kind: int, dimension: str, asked: StatsQuery
    ) -> stats.Breakdown:
        async with self.rt.db.read() as session:
            return await stats.get_link_breakdown(
                session, target, dimension, asked, self.clock.now(), limit=1000, kind=kind
            )

    @invariant()
    def nothing_drifts(self) -> None:
        figures = self.run(reconcile(self.rt, self.root))
        assert figures.drift == []
        assert (figures.stored, figures.pending) == (len(self.counted), len(self.waiting))


@pytest.mark.parametrize("pack_bytes", [MAX_PACK_BYTES, 200])
def test_figures_equal_a_count_by_hand(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack_bytes: int
) -> None:
    """Of targets with few clicks, and of some whose packs get too large."""
    monkeypatch.setattr(pack_updates, "MAX_PACK_BYTES", pack_bytes)
    (tmp_path / "data").mkdir()
    run_machine(Figures, database, tmp_path / "data", examples=8, steps=14)
