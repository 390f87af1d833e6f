"""How far the roll-ups are, and the lock that every writer of roll-ups holds.

A sketch cannot be added to in SQL: it is read, changed and written back, and two who do so at once would lose one's visitors.
"""

from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Table, select, update

from refract.analytics.cover import State
from refract.analytics.grains import moment_of, second_of
from refract.analytics.models import RollupState
from refract.core.db import ReadSession, WriteSession
from refract.core.rows import insert_or_skip

_ONE: Final = 1
_MOMENTS: Final = ("closed_until", "quarters_from", "days_from", "months_from", "settled_until")
_TABLE: Table = RollupState.__table__  # type: ignore[assignment]
_SELECT: Final = select(_TABLE).where(_TABLE.c.id == _ONE)


async def state_of(session: ReadSession) -> State:
    """How far the roll-ups are, for a reader. Ask it first: on a server, what the session reads afterwards is of the same moment."""
    if session.dialect != "sqlite":
        await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    return _state((await session.execute(_SELECT)).mappings().one_or_none())


async def hold(session: WriteSession) -> State:
    """Wait until nobody else writes roll-ups, keep everybody else out until the transaction ends, and say how far they are."""
    row = (await session.execute(_SELECT.with_for_update())).mappings().one_or_none()
    if row is None:
        await insert_or_skip(session, _TABLE, [{"id": _ONE, **_columns(State())}])
        row = (await session.execute(_SELECT.with_for_update())).mappings().one()
    return _state(row)


async def move(session: WriteSession, state: State) -> None:
    """Note how far they are now."""
    await session.execute(update(_TABLE).where(_TABLE.c.id == _ONE).values(_columns(state)))


def _columns(state: State) -> dict[str, Any]:
    return {name: moment_of(value) if name in _MOMENTS else value for name, value in asdict(state).items()}


def _state(row: Any) -> State:
    if row is None:
        return State()
    known = {name: value for name, value in row.items() if name != "id" and value is not None}
    return State(**{name: second_of(value) if name in _MOMENTS else value for name, value in known.items()})
