"""Finalized days: cumulatives from both ends, for other time zones, and top values."""

from refract.migrations.steps import add_column, drop_column, long_bytes, sa

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    add_column("click_rollups", sa.Column("settled_clicks", sa.BigInteger))
    add_column("click_rollups", sa.Column("edges", long_bytes()))
    add_column("click_rollups", sa.Column("tops", long_bytes()))
    add_column("rollup_state", sa.Column("settled_until", sa.BigInteger))
    add_column("rollup_state", sa.Column("settled_target", sa.BigInteger))


def downgrade() -> None:
    drop_column("rollup_state", "settled_target")
    drop_column("rollup_state", "settled_until")
    drop_column("click_rollups", "tops")
    drop_column("click_rollups", "edges")
    drop_column("click_rollups", "settled_clicks")
