"""Entries removed from a draft, for the 24 hours in which this can be undone."""

from refract.migrations.steps import UtcDateTime, create_index, create_table, drop_table, sa

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    create_table(
        "removed_list_entries",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("list_id", sa.BigInteger, nullable=False),
        sa.Column("removed_at", UtcDateTime, nullable=False),
        sa.Column("fields", sa.JSON, nullable=False),
    )
    create_index("ix_removed_list_entries_list", "removed_list_entries", ["list_id"])
    create_index("ix_removed_list_entries_removed_at", "removed_list_entries", ["removed_at"])


def downgrade() -> None:
    drop_table("removed_list_entries")
