"""Open roll-ups in a table of their own, in which several processes write at the same time.

Older code would not see their clicks.
"""

from refract.clicks.rollups.granularity import COARSE_GRAINS, QUARTER
from refract.clicks.rollups.rows import decode_delta
from refract.migrations.rollup_rows import ROLLUPS, VALUES, add_to_rollups
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
_OPEN = sa.table(
    "open_rollups",
    *(sa.column(name) for name in ("target_id", "kind", "start", "writer", *VALUES)),
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
    state = bind.execute(sa.select(_STATE).where(sa.column("id") == 1)).one_or_none()
    if state is None:
        return
    still_open = sa.and_(
        ROLLUPS.c.grain == QUARTER,
        ROLLUPS.c.start >= state.closed_until,
        sa.or_(
            ROLLUPS.c.start >= state.closed_until + _HOUR_SECONDS,
            ROLLUPS.c.target_id > state.closed_target,
        ),
    )
    moved = (ROLLUPS.c.target_id, ROLLUPS.c.kind, ROLLUPS.c.start, sa.literal(1))
    values = [ROLLUPS.c[name] for name in VALUES]
    rows = sa.select(*moved, *values).where(still_open)
    bind.execute(sa.insert(_OPEN).from_select([column.name for column in _OPEN.c], rows))
    bind.execute(sa.delete(ROLLUPS).where(still_open))
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
    state = bind.execute(sa.select(_STATE).where(sa.column("id") == 1)).one_or_none()
    while rows := bind.execute(sa.select(_OPEN).limit(_BATCH_SIZE)).all():
        for row in rows:
            is_late = state is not None and row.start < state.closed_until
            grains = (QUARTER, *COARSE_GRAINS) if is_late else (QUARTER,)
            slot = (row.target_id, row.kind, row.start)
            add_to_rollups(bind, state, slot, decode_delta(row), grains)
            key = [_OPEN.c[name] == getattr(row, name) for name in list(_OPEN.c.keys())[:4]]
            bind.execute(sa.delete(_OPEN).where(*key))
