"""Reading states of items, and notes apart from the summary."""

from refract.migrations.steps import add_column, create_index, drop_column, drop_index, sa

revision = "0040"
down_revision = "0039"

STATES = ("archived", "unread", "favorite")


def upgrade() -> None:
    """Add the columns. Existing items are read, in the library and no favorites."""
    add_column("items", sa.Column("notes", sa.Text))
    for name in STATES:
        state = sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())
        add_column("items", state)
        columns = ["user_id", "status", name, "confirmed_at", "id"]
        create_index(f"ix_items_{name}", "items", columns)


def downgrade() -> None:
    for name in reversed(STATES):
        drop_index(f"ix_items_{name}", "items")
        drop_column("items", name)
    drop_column("items", "notes")
