"""Open roll-ups in a table of their own, in which several processes write at the same time.

Older code would not see their clicks.
"""

from typing import Any

from refract.clicks.rollups.granularity import COARSE_GRAINS, DAY, MONTH, QUARTER, start_of
from refract.clicks.rollups.rows import RollupRow, decode_delta, decode_row
from refract.migrations.steps import (
    accept_older_code,
    add_column,
    change_rows,
    create_table,
    drop_column,
    drop_table,
    long_bytes,
    refuse_older_code,
    sa,
)

revision = "0031"
down_revision = "0030"

_HOUR_SECONDS = 3600
_NEVER = 2**33
_BATCH_SIZE = 500
_VALUES = ("people", "bots", "private", "uniques", "visitors", "parts")
_ROLLUPS = sa.table(
    "click_rollups",
    *(sa.column(name) for name in ("target_id", "kind", "grain", "start", *_VALUES)),
)
_OPEN = sa.table(
    "open_rollups",
    *(sa.column(name) for name in ("target_id", "kind", "start", "writer", *_VALUES)),
)
_STATE = sa.table(
    "rollup_state",
    *(
        sa.column(name)
        for name in ("closed_until", "closed_target", "quarters_from", "days_from", "months_from")
    ),
)


def upgrade() -> None:
    create_table(
        "open_rollups",
        sa.Column("target_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("writer", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("people", sa.BigInteger, nullable=False),
        sa.Column("bots", sa.BigInteger, nullable=False),
        sa.Column("private", sa.BigInteger, nullable=False),
        sa.Column("uniques", sa.BigInteger, nullable=False),
        sa.Column("visitors", long_bytes()),
        sa.Column("parts", long_bytes()),
    )
    create_table(
        "rollup_writers",
        sa.Column("number", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.BigInteger, nullable=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.Column("oldest", sa.BigInteger, nullable=False),
    )
    change_rows(_move_open_rows)
    drop_column("rollup_state", "closed_target")
    refuse_older_code(revision, "0.2.0")


def _move_open_rows(bind: sa.Connection) -> None:
    """Move the quarter hours that are in no coarser period yet."""
    columns = {column["name"] for column in sa.inspect(bind).get_columns("rollup_state")}
    if "closed_target" not in columns:  # done already
        return
    state = bind.execute(sa.select(_STATE)).one_or_none()
    if state is None:
        return
    still_open = sa.and_(
        _ROLLUPS.c.grain == QUARTER,
        _ROLLUPS.c.start >= state.closed_until,
        sa.or_(
            _ROLLUPS.c.start >= state.closed_until + _HOUR_SECONDS,
            _ROLLUPS.c.target_id > state.closed_target,
        ),
    )
    moved = (_ROLLUPS.c.target_id, _ROLLUPS.c.kind, _ROLLUPS.c.start, sa.literal(1))
    values = [_ROLLUPS.c[name] for name in _VALUES]
    rows = sa.select(*moved, *values).where(still_open)
    bind.execute(sa.insert(_OPEN).from_select([column.name for column in _OPEN.c], rows))
    bind.execute(sa.delete(_ROLLUPS).where(still_open))
    writers = sa.table(
        "rollup_writers", *(sa.column(name) for name in ("number", "holder", "turn", "oldest"))
    )
    oldest = bind.scalar(sa.select(sa.func.min(_OPEN.c.start)))
    first = {"number": 1, "holder": 0, "turn": 0, "oldest": _NEVER if oldest is None else oldest}
    bind.execute(sa.delete(writers))
    bind.execute(sa.insert(writers).values(first))


def downgrade() -> None:
    add_column(
        "rollup_state",
        sa.Column("closed_target", sa.BigInteger, nullable=False, server_default=sa.text("-1")),
    )
    change_rows(_fold_open_rows)
    drop_table("open_rollups")
    drop_table("rollup_writers")
    accept_older_code(revision)


def _fold_open_rows(bind: sa.Connection) -> None:
    """Move open rows back; late ones to the coarser periods of their hour too."""
    if not sa.inspect(bind).has_table("open_rollups"):  # done already
        return
    state = bind.execute(sa.select(_STATE)).one_or_none()
    while rows := bind.execute(sa.select(_OPEN).limit(_BATCH_SIZE)).all():
        for row in rows:
            _fold_row(bind, state, row)
            key = [_OPEN.c[name] == getattr(row, name) for name in list(_OPEN.c.keys())[:4]]
            bind.execute(sa.delete(_OPEN).where(*key))


def _fold_row(bind: sa.Connection, state: Any, row: Any) -> None:
    is_late = state is not None and row.start < state.closed_until
    delta, more_in_day = decode_delta(row), 0
    for grain in (QUARTER, *COARSE_GRAINS) if is_late else (QUARTER,):
        start = start_of(grain, row.start)
        horizons = {MONTH: "months_from", DAY: "days_from"}
        if state is not None and start < getattr(state, horizons.get(grain, "quarters_from")):
            continue
        key = {"target_id": row.target_id, "kind": row.kind, "grain": grain, "start": start}
        same = [_ROLLUPS.c[name] == value for name, value in key.items()]
        stored = bind.execute(
            sa.select(*(_ROLLUPS.c[name] for name in _VALUES)).where(*same)
        ).one_or_none()
        merged = RollupRow() if stored is None else decode_row(*stored)
        merged.add_clicks(delta)
        if grain == MONTH:
            merged.uniques += more_in_day
        else:
            more = merged.add_visitors(delta)
            more_in_day = more if grain == DAY else more_in_day
        values = dict(zip(_VALUES, merged.encode(pack=grain != QUARTER), strict=True))
        if stored is None:
            bind.execute(sa.insert(_ROLLUPS).values(**key, **values))
        else:
            bind.execute(sa.update(_ROLLUPS).where(*same).values(**values))
