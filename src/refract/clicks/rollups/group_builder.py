"""Roll-ups of groups from those of their links, in slices, under the locks of all writers.

Newest clicks first: day by day while quarter hours are kept, then month by month, then all older
months. Within such a window the links are added in the order of their ids. So two numbers tell
which clicks are in, and the ingester adds exactly those that will not be read here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Select, Table, delete, func, select

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.models import ClickPack, ClickRollup, OpenRollup
from refract.clicks.rollups.finalization import finalize_target
from refract.clicks.rollups.folding import RollupFolder
from refract.clicks.rollups.granularity import (
    DAY,
    MONTH,
    QUARTER,
    end_of,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.groups import (
    END_OF_TIME,
    MEMBERS,
    GroupProgress,
    add_link_clicks,
    load_group,
    save_group,
    select_members,
)
from refract.clicks.rollups.packs import iter_entries
from refract.clicks.rollups.rows import add_delta, decode_delta
from refract.clicks.rollups.state import RollupProgress, lock_progress, save_progress
from refract.clicks.rollups.updater import RollupUpdater
from refract.clicks.rollups.writers import LockedWriter, lock_all_writers, save_writer
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.runtime import Runtime
from refract.jobs.slices import write_in_slices
from refract.links.models import LinkGroup

LINKS_PER_SLICE: Final = 2_000
ROWS_PER_SLICE: Final = 1_000
_ROLLUPS: Table = ClickRollup.__table__  # type: ignore[assignment]
_OPEN: Table = OpenRollup.__table__  # type: ignore[assignment]
_PACKS: Table = ClickPack.__table__  # type: ignore[assignment]


async def request_group(session: WriteSession, kind: int, group_id: int) -> None:
    """Let a group have roll-ups. `build_group` must follow."""
    fresh = GroupProgress(kind, group_id, 1, None, END_OF_TIME, END_OF_TIME, -1)
    await insert_if_absent(session, LinkGroup, [fresh._asdict()])


async def build_group(rt: Runtime, kind: int, group_id: int) -> None:
    """Build the roll-ups of a group, or continue to; give up if its links change meanwhile."""
    await write_in_slices(rt, GroupBuild(kind, group_id).add_slice)
    await finalize_target(rt, group_id, kind)


async def drop_group(rt: Runtime, kind: int, group_id: int) -> None:
    """Delete the roll-ups of a group."""

    async def drop_slice(session: WriteSession) -> bool:
        state = await lock_progress(session)
        writers = await lock_all_writers(session)
        rest = delete(LinkGroup).where(LinkGroup.kind == kind, LinkGroup.id == group_id)
        await session.execute(rest)
        deleted = await _delete_rows(session, writers, kind, group_id)
        turns = {"turn": state.turn + 1, "groups_turn": state.groups_turn + 1}
        await save_progress(session, replace(state, **turns))
        return deleted > 0

    await write_in_slices(rt, drop_slice)


class GroupBuild:
    """One attempt to build the roll-ups of a group."""

    def __init__(self, kind: int, group_id: int) -> None:
        self._kind = kind
        self._group_id = group_id
        self._version: int | None = None
        self._folder = RollupFolder()  # its rows stay decoded from one slice to the next
        self._updater = RollupUpdater()

    async def add_slice(self, session: WriteSession) -> bool:
        """Do the next step; return False when there is none."""
        state = await lock_progress(session)
        group = await load_group(session, self._kind, self._group_id)
        if group is None or group.is_complete or self._version not in (None, group.version):
            return False
        self._version = group.version
        writers = await lock_all_writers(session)
        if group.built_version == group.version:
            state, group = await self._add_links(session, state, writers, group)
        else:
            deleted = await _delete_rows(session, writers, group.kind, group.id)
            state = replace(state, turn=state.turn + 1)
            group = _begin(group, group.version if not deleted else None)
        await save_group(session, group)
        await save_progress(session, replace(state, groups_turn=state.groups_turn + 1))
        return True

    async def _add_links(
        self,
        session: WriteSession,
        state: RollupProgress,
        writers: Iterable[LockedWriter],
        group: GroupProgress,
    ) -> tuple[RollupProgress, GroupProgress]:
        """Add some links of the current window, or of the next one."""
        if group.built_link < 0:
            oldest = min(writer.oldest for writer in writers)
            begin = await _find_window(session, state, group.built_from, oldest)
            if begin is None:
                return state, group._replace(built_from=0, window_from=0)
            group = group._replace(window_from=begin)
        closed, packs, still_open, last = await _load_rows(session, state, group)
        if closed or packs:
            quarters = _sum_rows(group, closed)
            _add_packs(group, packs, quarters)
            added = await self._folder.add_quarters(session, state, quarters)
            # Its days are finalized here, not by a second look at the days of all targets.
            state = replace(
                added, settled_until=state.settled_until, settled_target=state.settled_target
            )
        if still_open:
            await self._updater.add_clicks(session, _sum_rows(group, still_open))
        if last is None:
            return state, group._replace(built_from=group.window_from, built_link=-1)
        return state, group._replace(built_link=last)


def _begin(group: GroupProgress, version: int | None) -> GroupProgress:
    """Return the progress of a group without roll-ups."""
    return GroupProgress(group.kind, group.id, group.version, version, END_OF_TIME, END_OF_TIME, -1)


async def _delete_rows(
    session: WriteSession, writers: Iterable[LockedWriter], kind: int, group_id: int
) -> int:
    """Delete all open rows and a batch of the others; return how many these were."""
    mine = (_ROLLUPS.c.target_id == group_id, _ROLLUPS.c.kind == kind)
    await session.execute(delete(_OPEN).where(_OPEN.c.target_id == group_id, _OPEN.c.kind == kind))
    for writer in writers:  # nobody relies on having written these rows
        await save_writer(session, writer, writer.oldest)
    query = select(_ROLLUPS.c.grain, _ROLLUPS.c.start).where(*mine)
    rows = (await session.execute(query.limit(ROWS_PER_SLICE))).all()
    for grain in {row.grain for row in rows}:
        starts = [row.start for row in rows if row.grain == grain]
        between = _ROLLUPS.c.start >= min(starts), _ROLLUPS.c.start <= max(starts)
        await session.execute(delete(_ROLLUPS).where(*mine, _ROLLUPS.c.grain == grain, *between))
    return len(rows)


async def _find_window(
    session: WriteSession, state: RollupProgress, before: int, oldest_open: int
) -> int | None:
    """Return the beginning of the next window; None if there are no older clicks."""
    found = []
    horizons = (
        (QUARTER, state.quarters_from, before),
        (DAY, state.days_from, min(before, state.quarters_from)),
        (MONTH, state.months_from, min(before, state.days_from)),
    )
    for grain, begin, end in horizons:
        within = _ROLLUPS.c.start >= to_datetime(begin), _ROLLUPS.c.start < to_datetime(end)
        query = select(_ROLLUPS.c.start).where(_ROLLUPS.c.grain == grain, *within)
        found.append(await session.scalar(query.order_by(_ROLLUPS.c.start.desc()).limit(1)))
    if oldest_open < before:
        newest = select(func.max(_OPEN.c.start)).where(_OPEN.c.start < to_datetime(before))
        found.append(await session.scalar(newest))
    latest = max((to_seconds(start) for start in found if start is not None), default=None)
    month = await session.scalar(
        select(func.max(_PACKS.c.start)).where(_PACKS.c.start < to_datetime(before))
    )
    if month is not None:  # a pack does not say when its last click was
        end = min(before, state.closed_until, end_of(MONTH, to_seconds(month)))
        latest = max(end - 1, latest or 0)
    return None if latest is None else _get_window(state, latest)


def _get_window(state: RollupProgress, at: int) -> int:
    """Return the beginning of the window that contains this time."""
    if at >= state.quarters_from:
        return start_of(DAY, at)
    return max(start_of(MONTH, at), state.days_from) if at >= state.days_from else 0


async def _load_rows(
    session: WriteSession, state: RollupProgress, group: GroupProgress
) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any], int | None]:
    """Return rows of the next links in the window, and the last link; None after the last one.

    The rows are those of the window's grain, packs of its months, and open ones.
    """
    last = await session.scalar(
        select_members(group, after=group.built_link).offset(LINKS_PER_SLICE - 1).limit(1)
    )
    grain = QUARTER
    if group.window_from < state.quarters_from:
        grain = DAY if group.window_from >= state.days_from else MONTH
    kept = _ROLLUPS.c.start >= to_datetime(state.get_kept_from(grain))
    query = _select_rows(_ROLLUPS, group).where(_ROLLUPS.c.grain == grain, kept)
    closed, last = await _load_first(session, query, group, last)
    packs, last = await _load_first(session, _select_packs(group), group, last)
    still_open, last = await _load_first(session, _select_rows(_OPEN, group), group, last)
    if last is not None:
        closed = [row for row in closed if row.target_id <= last]
        packs = [row for row in packs if row.target_id <= last]
    return closed, packs, still_open, last


def _select_packs(group: GroupProgress) -> Select[Any]:
    """Select the packs that may have clicks of the window."""
    group_id, link_id = MEMBERS[group.kind]
    month = to_datetime(start_of(MONTH, group.window_from))
    within = _PACKS.c.start == month  # the window is a part of one month
    if group.window_from == 0:
        within = _PACKS.c.start < to_datetime(group.built_from)
    return (
        select(_PACKS)
        .join(link_id.class_, link_id == _PACKS.c.target_id)
        .where(group_id == group.id, link_id > group.built_link, within)
        .where(_PACKS.c.kind == LINK_CLICK)
        .order_by(link_id)
    )


def _select_rows(table: Table, group: GroupProgress) -> Select[Any]:
    group_id, link_id = MEMBERS[group.kind]
    return (
        select(table)
        .join(link_id.class_, link_id == table.c.target_id)
        .where(
            group_id == group.id,
            link_id > group.built_link,
            table.c.kind == LINK_CLICK,
            table.c.start >= to_datetime(group.window_from),
            table.c.start < to_datetime(group.built_from),
        )
        .order_by(link_id)
    )


async def _load_first(
    session: WriteSession, query: Select[Any], group: GroupProgress, last: int | None
) -> tuple[Sequence[Any], int | None]:
    """Return the rows of links up to `last`, or of fewer if there are many; and the last link."""
    _, link_id = MEMBERS[group.kind]
    query = query if last is None else query.where(link_id <= last)
    rows: Sequence[Any] = (await session.execute(query.limit(ROWS_PER_SLICE + 1))).all()
    if len(rows) <= ROWS_PER_SLICE:
        return rows, last
    whole = [row for row in rows if row.target_id < rows[-1].target_id]
    if not whole:  # one link has more
        whole = list(await session.execute(query.where(link_id == rows[-1].target_id)))
    return whole, whole[-1].target_id


def _sum_rows(group: GroupProgress, rows: Iterable[Any]) -> dict[RollupSlot, RollupDelta]:
    found: dict[RollupSlot, RollupDelta] = {}
    for row in rows:
        into = found.setdefault((group.id, group.kind, to_seconds(row.start)), RollupDelta())
        delta = decode_delta(row)
        if row.visitors is None:  # a month
            delta.uniques = row.uniques
        add_delta(into, delta)
        add_link_clicks(into, row.target_id, row.people)
    return found


def _add_packs(
    group: GroupProgress, packs: Iterable[Any], into: dict[RollupSlot, RollupDelta]
) -> None:
    """Add the quarter hours of packs that are in the window."""
    for pack in packs:
        for start, delta in iter_entries(to_seconds(pack.start), pack.data):
            if group.window_from <= start < group.built_from:
                total = into.setdefault((group.id, group.kind, start), RollupDelta())
                add_delta(total, delta)
                add_link_clicks(total, pack.target_id, delta.people)
