"""Each click is stored exactly once, whatever fails; what does not add up is reported."""

import asyncio
import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from refract.clicks.ingest import agents as ingest_agents
from refract.clicks.ingest import ingester as ingesting
from refract.clicks.ingest.ingester import Ingester, PreparedBatch
from refract.clicks.ingest.transaction import IngestRun
from refract.clicks.models import ClickEvent, OpenRollup, SpoolCheckpoint
from refract.clicks.queries import select_events
from refract.clicks.rollups import updater
from refract.clicks.rollups.state import lock_progress
from refract.clicks.spool.format import ENTRY_CLICK, LINK_CLICK, PREFETCH, encode_frame
from refract.clicks.spool.reader import (
    SpoolBatch,
    acknowledge_damage,
    list_spools,
    lock_ingester,
)
from refract.clicks.spool.writer import SpoolWriter, format_segment_name
from refract.clicks.verify import Reconciliation, reconcile
from refract.core.clock import ManualClock
from refract.core.db.session import WriteSession, count_statements
from refract.core.errors import StoreUnavailable
from refract.core.runtime import Runtime
from refract.links.models import LinkTotals

LINK = 42


@pytest.fixture
def root(rt: Runtime) -> Path:
    return rt.settings.effective_spool_dir


def click(rt: Runtime, target: int = LINK, flags: int = 0, kind: int = LINK_CLICK) -> bytes:
    return encode_frame(
        kind,
        target,
        rt.clock.now_ns(),
        flags,
        b"\x0a\x00\x00",
        b"Mozilla/5.0 Firefox/140.0",
        b"https://a.example/b",
        b"utm_source=x",
    )


def spool_of(
    root: Path, *turns: list[bytes], segment_bytes: int = 8 << 20, close: bool = True
) -> SpoolWriter:
    spool = SpoolWriter(root, node="here", segment_bytes=segment_bytes)
    for turn in turns:
        assert spool.append(turn) == len(turn)
    if close:
        spool.close()
    return spool


async def totals(rt: Runtime, link: int = LINK) -> tuple[int, int]:
    async with rt.db.read() as session:
        row = await session.get(LinkTotals, link)
        return (row.total_clicks, row.bot_clicks) if row else (0, 0)


async def agree(rt: Runtime, clicks: int) -> Reconciliation:
    figures = await reconcile(rt)
    assert figures.drift == []
    assert (figures.accepted, figures.stored, figures.pending) == (clicks, clicks, 0)
    return figures


async def test_clicks_become_events_and_totals_and_the_spool_goes(
    rt: Runtime, root: Path, clock: ManualClock
) -> None:
    turns = [
        [click(rt), click(rt, flags=PREFETCH)],
        [click(rt, 43), click(rt, 99, kind=ENTRY_CLICK)],
    ]
    spool_of(root, *turns)
    assert (await reconcile(rt)).pending == 4

    assert await Ingester(rt).apply_all() == 4

    assert await totals(rt) == (1, 1)
    assert await totals(rt, 43) == (1, 0)
    assert await totals(rt, 99) == (0, 0)  # an entry of a list is not a link
    async with rt.db.read() as session:
        event = (await session.execute(select_events().where(ClickEvent.target_id == 43))).one()
        assert (event.at, event.node, event.network, event.referrer_host) == (
            clock.now(),
            "here",
            "10.0.0.0",
            "a.example",
        )
        assert (await session.get_one(LinkTotals, 43)).last_clicked_at == clock.now()
    assert list_spools(root) == []
    await agree(rt, 4)


async def test_a_living_spool_is_followed_as_it_grows(rt: Runtime, root: Path) -> None:
    ingester = Ingester(rt)
    spool = spool_of(root, [click(rt)], close=False)
    assert await ingester.apply_all() == 1
    assert await ingester.apply_all() == 0
    for _ in range(5):
        spool.append([click(rt)])
    assert await ingester.apply_all() == 5
    spool.close()
    assert await ingester.apply_all() == 0

    assert list_spools(root) == []
    await agree(rt, 6)


async def test_many_segments_and_batches_keep_their_order(
    rt: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.clicks.ingest.ingester.BATCH_SIZE", 7)
    spool_of(root, *[[click(rt) for _ in range(5)] for _ in range(20)], segment_bytes=4096)

    assert await Ingester(rt).apply_all() == 100

    assert await totals(rt) == (100, 0)
    await agree(rt, 100)


async def test_two_ingesters_at_once_apply_each_click_once(
    rt: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.clicks.ingest.ingester.BATCH_SIZE", 10)
    for _ in range(3):
        spool_of(root, [click(rt) for _ in range(50)])
    ingesters = [Ingester(rt) for _ in range(2)]

    while list_spools(root):
        results = await asyncio.gather(
            *(one.apply_all() for one in ingesters), return_exceptions=True
        )
        assert not [
            result
            for result in results
            if isinstance(result, Exception) and not isinstance(result, FileNotFoundError)
        ]

    assert await totals(rt) == (150, 0)
    await agree(rt, 150)


async def test_one_directory_has_one_ingester(root: Path) -> None:
    with lock_ingester(root) as first, lock_ingester(root) as second:
        assert (first, second) == (True, False)
    with lock_ingester(root) as again:
        assert again


async def test_a_torn_tail_is_counted_and_is_no_drift(rt: Runtime, root: Path) -> None:
    spool = spool_of(root, [click(rt), click(rt)])
    path = spool.directory / format_segment_name(1)
    path.write_bytes(path.read_bytes()[:-5])

    assert await Ingester(rt).apply_all() == 1

    async with rt.db.read() as session:
        (row,) = (await session.scalars(select(SpoolCheckpoint))).all()
        assert row.torn == len(click(rt)) - 5
    await agree(rt, 1)


async def test_damage_is_set_aside_the_rest_is_salvaged_and_the_loss_can_be_acknowledged(
    rt: Runtime, root: Path
) -> None:
    """Damaged bytes cost only themselves.

    The finding (drill "spool bytes damaged"): the rest of the segment, 20 good clicks here, was
    given up, and verify failed ever after.
    """
    spool = spool_of(root, *[[click(rt)] * 10 for _ in range(3)], segment_bytes=4096)
    segments = sorted(spool.directory.glob("*.clicks"))
    assert len(segments) == 1
    data = bytearray(segments[0].read_bytes())
    data[16 + len(click(rt)) * 10 + 20] ^= 0xFF
    segments[0].write_bytes(bytes(data))

    assert await Ingester(rt).apply_all() == 29

    figures = await reconcile(rt)
    assert figures.stored == figures.events == 29
    (sentence,) = figures.drift
    assert sentence.startswith("Unreadable clicks are kept in")
    (aside,) = (root / "set-aside").iterdir()
    assert aside.name in sentence
    assert aside.read_bytes() == bytes(data)[16 + len(click(rt)) * 10 :][: len(click(rt))]

    (kept,) = acknowledge_damage(root)
    assert kept.stat().st_size == len(click(rt))
    figures = await reconcile(rt)
    assert (figures.drift, figures.acknowledged) == ([], (len(click(rt)),))


async def test_a_file_that_comes_back_is_not_applied_again(
    rt: Runtime, root: Path, tmp_path: Path
) -> None:
    spool = spool_of(root, [click(rt)] * 3)
    shutil.copytree(spool.directory, tmp_path / "backup")
    await Ingester(rt).apply_all()
    assert not spool.directory.exists()
    shutil.copytree(tmp_path / "backup", spool.directory)

    assert await Ingester(rt).apply_all() == 0

    assert await totals(rt) == (3, 0)
    assert not spool.directory.exists()
    await agree(rt, 3)


class Unlucky(Ingester):
    """The connection breaks around the first commit, whose outcome is unknown."""

    def __init__(self, rt: Runtime, *, committed: bool) -> None:
        super().__init__(rt)
        self.committed = committed
        self.left = 1

    async def _apply_run(self, run: IngestRun, batch: SpoolBatch, *, follow: bool = True) -> None:
        if not self.left or self.committed:
            await super()._apply_run(run, batch, follow=follow)
        if self.left:
            self.left -= 1
            raise StoreUnavailable


@pytest.mark.parametrize("committed", [True, False])
async def test_a_commit_whose_outcome_is_unknown_counts_once(
    rt: Runtime, root: Path, committed: bool
) -> None:
    spool_of(root, [click(rt)] * 5)
    ingester = Unlucky(rt, committed=committed)

    assert await ingester._run_once() == 1.0
    await ingester._run_once()

    assert await totals(rt) == (5, 0)
    await agree(rt, 5)


async def test_an_ingester_that_believes_in_an_old_place_applies_nothing(
    rt: Runtime, root: Path
) -> None:
    spool = spool_of(root, [click(rt)] * 5, close=False)
    behind = Ingester(rt)
    await behind.apply_all()
    spool.append([click(rt)])
    await Ingester(rt).apply_all()

    assert await behind.apply_all() == 0

    assert await totals(rt) == (6, 0)
    spool.close()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda: update(LinkTotals).values(total_clicks=LinkTotals.total_clicks + 1),
            "The totals of links add up to 4 clicks, but their events to 3 clicks.",
        ),
        (
            lambda: update(SpoolCheckpoint).values(stored=7),
            "The spools had 7 clicks, but the database and the archive have 3 events.",
        ),
        (
            lambda: update(SpoolCheckpoint).values(stored=7),
            "The spools had 7 clicks, but the roll-ups have 3 clicks.",
        ),
        (
            lambda: update(OpenRollup).values(bots=1),
            "The spools had 3 clicks, but the roll-ups have 4 clicks.",
        ),
        (
            lambda: update(OpenRollup).values(bots=1),
            "2026-06-01: the database and the archive have 3 events, but the roll-ups have 4",
        ),
        (
            lambda: update(OpenRollup).values(people=2, bots=1),
            "The roll-ups of 1 link don't add up to its total.",
        ),
    ],
)
async def test_drift_is_named(
    rt: Runtime, root: Path, spoil: Callable[[], Any], sentence: str
) -> None:
    spool_of(root, [click(rt)] * 3)
    await Ingester(rt).apply_all()
    async with rt.db.write() as session:
        await session.execute(spoil())

    assert any(drift.startswith(sentence) for drift in (await reconcile(rt)).drift)


async def test_what_was_not_kept_is_accepted_but_never_stored(rt: Runtime, root: Path) -> None:
    spool = spool_of(root, [click(rt)], close=False)
    spool.dropped = 2
    spool._save_dropped()
    spool.close()
    await Ingester(rt).apply_all()

    figures = await reconcile(rt)
    assert (figures.accepted, figures.stored, figures.not_kept) == (3, 1, 2)
    assert figures.drift == []


async def test_clicks_wait_while_the_database_is_away(
    rt: Runtime, root: Path, clock: ManualClock
) -> None:
    spool_of(root, [click(rt)])
    ingester = Unlucky(rt, committed=False)
    clock.advance(7)
    await ingester._run_once()
    assert b"refract_ingest_lag_seconds 7.0" in rt.metrics.render()
    await ingester._run_once()
    assert b"refract_ingest_lag_seconds 0.0" in rt.metrics.render()
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(ClickEvent)) == 1


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> int:
    """Read ten clicks at once, forty in a run; return the clicks of a run."""
    monkeypatch.setattr(ingesting, "BATCH_SIZE", 40)
    monkeypatch.setattr(ingesting, "MAX_BATCH_SIZE", 10)
    monkeypatch.setattr(ingesting, "MAX_RUN_CLICKS", 40)
    return 40


async def test_roll_ups_are_written_once_per_run(rt: Runtime, root: Path, short_runs: int) -> None:
    spool_of(root, *[[click(rt)] * 10 for _ in range(12)])
    statements: list[str] = []
    stop = count_statements(rt.db.engine, statements.append)

    assert await Ingester(rt).apply_all() == 120

    stop()
    runs = [text for text in statements if text.startswith("UPDATE rollup_writers")]
    assert len(runs) == 120 // short_runs
    assert await totals(rt) == (120, 0)
    await agree(rt, 120)


class Interrupted(Ingester):
    """The database goes away before the fourth batch is stored."""

    left = 3

    async def _prepare_batch(self, run: IngestRun, batch: SpoolBatch) -> PreparedBatch:
        self.left -= 1
        if self.left == -1:
            raise StoreUnavailable
        return await super()._prepare_batch(run, batch)


async def test_a_run_that_fails_in_the_middle_leaves_nothing(
    rt: Runtime, root: Path, short_runs: int
) -> None:
    spool_of(root, *[[click(rt)] * 10 for _ in range(7)])
    ingester = Interrupted(rt)

    assert await ingester._run_once() == 1.0

    figures = await reconcile(rt)
    whole_runs = 30 // short_runs * short_runs
    assert (figures.drift, figures.stored, figures.pending) == ([], whole_runs, 70 - whole_runs)
    await ingester._run_once()
    await agree(rt, 70)


class Delayed(Ingester):
    """Every transaction takes a minute, in which the machine works for others."""

    async def _store_batches(
        self,
        session: WriteSession,
        run: IngestRun,
        ready: list[PreparedBatch],
        *,
        follow: bool,
    ) -> None:
        await super()._store_batches(session, run, ready, follow=follow)
        assert isinstance(self._rt.clock, ManualClock)
        self._rt.clock.advance(60)
        assert not gc.isenabled()


async def test_runs_grow_with_a_backlog_and_a_busy_machine_does_not_shorten_them(
    rt: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "BATCH_SIZE", 5)
    spool_of(root, *[[click(rt)] * 10 for _ in range(7)])
    ingester = Delayed(rt)

    assert await ingester.apply_all() == 70

    assert ingester._run_size == 40
    assert gc.isenabled()
    ingester._adapt_run_size(40, ingesting.MAX_LOCK_SECONDS * ingesting.LOCK_TARGET * 2)
    assert ingester._run_size == 20


async def test_a_run_may_block_others_longer_while_clicks_have_been_waiting(
    rt: Runtime, root: Path, clock: ManualClock
) -> None:
    ingester = Ingester(rt)
    await ingester.apply_all()
    ingester._run_size = 8000

    ingester._adapt_run_size(8000, ingesting.MAX_LOCK_SECONDS * 1.5)
    assert ingester._run_size < 8000

    shortened = ingester._run_size
    clock.advance(ingesting.BACKLOG_SECONDS)
    ingester._adapt_run_size(shortened, ingesting.MAX_LOCK_SECONDS * 1.5)
    assert ingester._run_size > shortened
    ingester._adapt_run_size(ingester._run_size, ingesting.MAX_BACKLOG_LOCK_SECONDS * 2)
    assert ingester._run_size < shortened


class Observed(Ingester):
    """An ingester that reports when the events of a run are stored."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(rt)
        self.events_stored = asyncio.Event()

    async def _store_batches(
        self,
        session: WriteSession,
        run: IngestRun,
        ready: list[PreparedBatch],
        *,
        follow: bool,
    ) -> None:
        await super()._store_batches(session, run, ready, follow=follow)
        self.events_stored.set()


async def test_writers_wait_for_each_other_only_to_write_roll_ups(rt: Runtime, root: Path) -> None:
    spool_of(root, *[[click(rt)] * 10 for _ in range(3)])
    ingester = Observed(rt)
    await ingester.warm_up()
    async with rt.db.write() as session:
        await lock_progress(session)
        storing = asyncio.create_task(ingester.apply_all())
        if rt.db.dialect != "sqlite":  # which has one lock for everything
            await asyncio.wait_for(ingester.events_stored.wait(), 30)
        await asyncio.sleep(0)
        assert not storing.done()

    assert await storing == 30
    await agree(rt, 30)


async def test_patterns_of_agents_are_dropped_when_idle_and_loaded_for_a_new_one(
    rt: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_agents, "PATTERNS_IDLE_SECONDS", 0.0)
    ingester = Ingester(rt)
    spool_of(root, [click(rt)])
    await ingester._run_once()
    assert ingester._tools is not None
    dropped = not ingester._tools.agents.has_patterns

    new = b"Mozilla/5.0 Firefox/141.0"
    spool_of(root, [click(rt), click(rt)])
    await ingester.apply_all()
    stays_dropped = not ingester._tools.agents.has_patterns
    frame = encode_frame(LINK_CLICK, LINK, rt.clock.now_ns(), 0, b"\x0a\x00\x00", new, b"", b"")
    spool_of(root, [frame])
    await ingester.apply_all()

    assert (dropped, stays_dropped, ingester._tools.agents.has_patterns) == (True, True, True)
    assert await totals(rt) == (4, 0)
    async with rt.db.read() as session:
        found = (await session.execute(select_events())).all()
    assert {event.browser_version for event in found} == {"140.0", "141.0"}


@pytest.mark.parametrize("kept", [0, 100])
async def test_rows_of_rollups_that_are_not_cached_any_more_are_read_again(
    rt: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(updater, "MAX_CACHED_ROWS", 1)
    monkeypatch.setattr(updater, "MAX_KEPT_ROWS", kept)
    ingester = Ingester(rt)
    for _ in range(3):
        spool_of(root, [click(rt, target) for target in (41, 42, 43)])
        await ingester.apply_all()

    assert ingester._tools is not None
    assert len(ingester._tools.updater._rows) == (3 if kept else 0)
    assert await totals(rt, 41) == (3, 0)
    async with rt.db.read() as session:
        people = await session.scalars(select(OpenRollup.people))
        assert list(people) == [3, 3, 3]
    await agree(rt, 9)
