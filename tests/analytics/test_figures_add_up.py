"""Whatever traffic comes, and whatever happens meanwhile, the figures equal a count by hand: on three databases."""

import random
import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from refract.analytics import closing, parts, reading, salts
from refract.analytics.cover import State
from refract.analytics.figures import add_up
from refract.analytics.frames import ENTRY_CLICK, LINK_CLICK, PREFETCH, PRIVATE
from refract.analytics.grains import second_of
from refract.analytics.ingest import Ingester
from refract.analytics.reading import Counts, RollupRow
from refract.analytics.spool import Spool, segment_name
from refract.analytics.state import state_of
from tests.analytics import traffic
from tests.analytics.traffic import Counted, SaltModel, Sent
from tests.machine import Machine, run_machine

NODE = "here"
TARGETS = (7, 8)
KINDS = (LINK_CLICK, ENTRY_CLICK)
HOUR, DAY = 3600, 86_400
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
)


class Figures(Machine):
    """Clicks happen, spools tear and come back, ingesters begin anew, hours close, old figures go."""

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
        return second_of(self.clock.now())

    @rule(clicks=st.lists(CLICK, min_size=1, max_size=40), torn=st.booleans(), copied=st.booleans())
    def happen(self, clicks: list[tuple[int, int, int, int, bytes, bytes, bytes, bytes]], torn: bool, copied: bool) -> None:
        sent = [Sent(self.now - click[0], *click[1:]) for click in clicks]
        spool = Spool(self.root, node=NODE, segment_bytes=4096)
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
        assert (spool.directory / segment_name(1)).exists()
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
        shutil.copytree(copy, self.root / copy.name, dirs_exist_ok=True)  # still there when its only click was torn
        assert self.run(self.ingester.apply_all()) == 0

    @rule(seconds=st.sampled_from([60, 900, HOUR, 5 * HOUR, DAY, 3 * DAY, 31 * DAY]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def hours_are_closed(self) -> None:
        self.run(closing.close_hours(self.rt))

    @rule()
    def old_figures_go(self) -> None:
        self.run(closing.drop_old(self.rt))

    @rule()
    def salts_are_destroyed(self) -> None:
        self.run(salts.destroy_old(self.rt))

    @precondition(lambda self: self.counted and not self.waiting)
    @rule(seed=st.integers(0, 1 << 30))
    def figures_are_read(self, seed: int) -> None:
        chance = random.Random(seed)
        state = self.run(self._state())
        first = max(state.quarters_from, min(click.at for click in self.counted)) // 900
        edges = sorted(chance.randint(first, self.now // 900 + 1) * 900 for _ in range(2))
        for target in TARGETS:
            for kind in KINDS:
                self._compare(target, kind, edges[0], edges[1])
                self._compare(target, kind, state.quarters_from, self.now // 900 * 900 + 900)
                self._compare(target, kind, state.days_from, state.quarters_from)
                self._compare(target, kind, state.months_from, state.days_from, uniques=False)

    def _compare(self, target: int, kind: int, begin: int, end: int, *, uniques: bool = True) -> None:
        if begin >= end:
            return
        rows = self.run(self._rows(target, kind, begin, end))
        clicks = [click for click in self.counted if (click.sent.target, click.sent.kind) == (target, kind) and begin <= click.at < end]
        found, wanted = reading.counts(rows), traffic.counts(clicks)
        assert found[:3] == wanted[:3]
        assert not uniques or found.uniques == wanted.uniques
        summed: parts.Parts = {}
        for row in rows:
            parts.add(summed, parts.decode(row.parts))
        assert parts.breakdowns(summed) == traffic.breakdowns(clicks, NODE)

    async def _state(self) -> State:
        async with self.rt.db.read() as session:
            return await state_of(session)

    async def _rows(self, target: int, kind: int, begin: int, end: int) -> list[RollupRow]:
        async with self.rt.db.read() as session:
            return await reading.rows_of(session, await state_of(session), kind, [target], [(begin, end)])

    @invariant()
    def nothing_drifts(self) -> None:
        figures = self.run(add_up(self.rt, self.root))
        assert figures.drift == []
        assert (figures.stored, figures.pending) == (len(self.counted), len(self.waiting))


def test_figures_equal_a_count_by_hand(database: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    run_machine(Figures, database, tmp_path / "data", examples=12, steps=14)


def test_counts_of_nothing_are_nought() -> None:
    assert reading.counts([]) == Counts(0, 0, 0, 0)
