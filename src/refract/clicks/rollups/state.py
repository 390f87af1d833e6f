"""Progress of the roll-ups, and the rows that cover a range of time."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Table, select, update

from refract.clicks.models import RollupState
from refract.clicks.rollups.granularity import (
    DAY,
    HOUR,
    MONTH,
    QUARTER,
    SIX_HOURS,
    end_of,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent

# Months keep only a thousand values of a whole month: they are used only where nothing finer is
# left.
_GRAINS_DESCENDING: Final = (DAY, SIX_HOURS, HOUR)


@dataclass(frozen=True, slots=True)
class RollupProgress:
    """How far the roll-ups are; see `RollupState`. All times in seconds."""

    turn: int = 0
    closed_until: int = 0
    quarters_from: int = 0
    days_from: int = 0
    months_from: int = 0
    outlived: int = 0
    settled_until: int = 0
    settled_target: int = -1
    groups_turn: int = 0

    def get_kept_from(self, grain: int) -> int:
        """Return the time before which roll-ups of this grain are dropped, or about to be."""
        return (
            self.months_from
            if grain == MONTH
            else self.days_from
            if grain == DAY
            else self.quarters_from
        )


class GrainRange(NamedTuple):
    """All rows of one grain that begin in [begin, end)."""

    grain: int
    begin: int
    end: int


def plan_ranges(state: RollupProgress, begin: int, end: int) -> list[GrainRange]:
    """Return the fewest rows that cover [begin, end), which lie on quarter hours, in order of time.

    Open roll-ups are not among them. Before `quarters_from` the range is rounded outwards to whole
    UTC days, before `days_from` to whole months; before `months_from` there is nothing.
    """
    found: list[GrainRange] = []
    for grain, at, until in _iter_ranges(state, max(begin, state.months_from), end):
        if found and found[-1].grain == grain and found[-1].end == at:
            found[-1] = GrainRange(grain, found[-1].begin, until)
        else:
            found.append(GrainRange(grain, at, until))
    return found


def round_range(state: RollupProgress, begin: int, end: int) -> tuple[int, int]:
    """Return a range as `plan_ranges` rounds it."""
    begin = max(begin, state.months_from)
    return (
        start_of(_get_finest_grain(state, begin), begin),
        end_of(last := _get_finest_grain(state, end - 1), start_of(last, end - 1)),
    )


def _get_finest_grain(state: RollupProgress, at: int) -> int:
    if at < state.days_from:
        return MONTH
    return DAY if at < state.quarters_from else QUARTER


def _iter_ranges(state: RollupProgress, begin: int, end: int) -> Iterator[GrainRange]:
    at, end = begin, min(end, state.closed_until)  # there is nothing from there on
    while at < end:
        grain = _choose_grain(state, at, end)
        at = start_of(grain, at)
        yield GrainRange(grain, at, end_of(grain, at))
        at = end_of(grain, at)


def _choose_grain(state: RollupProgress, at: int, end: int) -> int:
    finest = _get_finest_grain(state, at)
    if finest == QUARTER:
        for grain in _GRAINS_DESCENDING:
            # A row that is still growing holds only clicks before `closed_until`.
            if start_of(grain, at) == at and min(end_of(grain, at), state.closed_until) <= end:
                return grain
    return finest


# The lock that every writer of `ClickRollup` holds. A sketch cannot be updated in SQL: it is read,
# changed and written back, and two concurrent writers would lose visitors.

_STATE_ID: Final = 1
_TIME_COLUMNS: Final = (
    "closed_until",
    "quarters_from",
    "days_from",
    "months_from",
    "settled_until",
)
_TABLE: Table = RollupState.__table__  # type: ignore[assignment]
_SELECT: Final = select(_TABLE).where(_TABLE.c.id == _STATE_ID)
_PROGRESS: Final = PreparedSelect(lambda: _SELECT, in_thread=True)


async def load_progress(session: ReadSession) -> RollupProgress:
    """Return the progress, for a reader.

    Call it first: on a database server, later reads of the session belong to the same snapshot.
    """
    if session.dialect != "sqlite":
        await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    found = await session.fetch(_PROGRESS)
    return _from_row(dict(zip(_TABLE.c.keys(), found[0], strict=True)) if found else None)


async def lock_progress(session: WriteSession) -> RollupProgress:
    """Lock the roll-ups against other writers until the transaction ends; return the progress."""
    row = (await session.execute(_SELECT.with_for_update())).mappings().one_or_none()
    if row is None:
        await insert_if_absent(
            session, _TABLE, [{"id": _STATE_ID, **_to_columns(RollupProgress())}]
        )
        row = (await session.execute(_SELECT.with_for_update())).mappings().one()
    return _from_row(row)


async def save_progress(session: WriteSession, state: RollupProgress) -> None:
    """Save the progress."""
    await session.execute(update(_TABLE).where(_TABLE.c.id == _STATE_ID).values(_to_columns(state)))


def _to_columns(state: RollupProgress) -> dict[str, Any]:
    return {
        name: to_datetime(value) if name in _TIME_COLUMNS else value
        for name, value in asdict(state).items()
    }


def _from_row(row: Any) -> RollupProgress:
    if row is None:
        return RollupProgress()
    known = {name: value for name, value in row.items() if name != "id" and value is not None}
    return RollupProgress(
        **{
            name: to_seconds(value) if name in _TIME_COLUMNS else value
            for name, value in known.items()
        }
    )
