"""Groups of links whose clicks are summed up together, and a number that announces their changes.

Older code would not add clicks to them.
"""

from refract.migrations.steps import add_column, create_table, drop_column, drop_table, op, sa

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    create_table(
        "link_groups",
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("built_version", sa.BigInteger),
        sa.Column("built_from", sa.BigInteger, nullable=False),
        sa.Column("window_from", sa.BigInteger, nullable=False),
        sa.Column("built_link", sa.BigInteger, nullable=False),
    )
    add_column("rollup_state", sa.Column("groups_turn", sa.BigInteger))


def downgrade() -> None:
    op.execute("DELETE FROM click_rollups WHERE kind > 100")
    drop_column("rollup_state", "groups_turn")
    drop_table("link_groups")
