"""Teams as owners of lists, who edited a draft, and defaults of teams."""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_index,
    drop_table,
    sa,
    text_key,
)

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    """Add nullable columns. Lists that are there belong to users and browsers as before."""
    add_column("lists", sa.Column("team_id", sa.BigInteger))
    create_index("ix_lists_team", "lists", ["team_id", "id"])
    create_table(
        "list_edits",
        sa.Column("list_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("user_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("action", text_key(20), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("edited_at", UtcDateTime, nullable=False),
    )
    create_index("ix_list_edits_user", "list_edits", ["user_id"])
    add_column("teams", sa.Column("default_domain", text_key(253)))
    add_column("teams", sa.Column("default_tags", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Keep the lists of teams without an owner: administrators can still find them."""
    drop_column("teams", "default_tags")
    drop_column("teams", "default_domain")
    drop_table("list_edits")
    drop_index("ix_lists_team", "lists")
    drop_column("lists", "team_id")
