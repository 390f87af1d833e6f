"""Packs: all quarter hours of a target with few clicks in a month, in one row.

Roll-ups that are there stay as they are. Older code would not see the clicks in packs.
"""

from refract.clicks.rollups.granularity import COARSE_GRAINS, QUARTER
from refract.clicks.rollups.packs import iter_entries
from refract.migrations.rollup_rows import add_to_rollups
from refract.migrations.steps import (
    accept_older_code,
    change_rows,
    create_table,
    drop_table,
    long_bytes,
    refuse_older_code,
    sa,
)

revision = "0034"
down_revision = "0033"

_BATCH_SIZE = 500
_PACKS = sa.table(
    "click_packs", *(sa.column(name) for name in ("start", "target_id", "kind", "data"))
)
_STATE = sa.table(
    "rollup_state",
    *(sa.column(name) for name in ("quarters_from", "days_from", "months_from")),
)


def upgrade() -> None:
    create_table(
        "click_packs",
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("target_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("people", sa.Integer, nullable=False),
        sa.Column("bots", sa.Integer, nullable=False),
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("data", long_bytes(), nullable=False),
    )
    refuse_older_code(revision, "0.2.0")


def downgrade() -> None:
    change_rows(_unpack)
    drop_table("click_packs")
    accept_older_code(revision)


def _unpack(bind: sa.Connection) -> None:
    """Write rows of all grains for every quarter hour."""
    if not sa.inspect(bind).has_table("click_packs"):  # done already
        return
    state = bind.execute(sa.select(_STATE).where(sa.column("id") == 1)).one_or_none()
    while packs := bind.execute(sa.select(_PACKS).limit(_BATCH_SIZE)).all():
        for pack in packs:
            for start, delta in iter_entries(pack.start, pack.data):
                slot = (pack.target_id, pack.kind, start)
                add_to_rollups(bind, state, slot, delta, (QUARTER, *COARSE_GRAINS))
            names = ("start", "target_id", "kind")
            same = [_PACKS.c[name] == getattr(pack, name) for name in names]
            bind.execute(sa.delete(_PACKS).where(*same))
