"""Teams, their members, and links that teams own."""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    change_rows,
    create_index,
    create_table,
    drop_column,
    drop_table,
    sa,
    text_key,
)

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    create_table(
        "teams",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("slug", text_key(50), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("issuer", text_key(255)),
        sa.Column("group_value", text_key(255)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("slug", name="uq_teams_slug"),
    )
    create_index("ix_teams_issuer", "teams", ["issuer", "group_value"])
    create_table(
        "team_members",
        _key("team_members", "team_id", "teams.id"),
        _key("team_members", "user_id", "users.id"),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("added_by", sa.BigInteger),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.CheckConstraint("role IN ('member', 'manager')", name="ck_team_members_role"),
    )
    create_index("ix_team_members_user", "team_members", ["user_id", "team_id"])
    create_table(
        "link_teams",
        _key("link_teams", "link_id", "links.id"),
        _key("link_teams", "team_id", "teams.id"),
        sa.Column("primary_link_id", sa.BigInteger),
        sa.Column("added_by", sa.BigInteger),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("primary_link_id", name="uq_link_teams_primary_link_id"),
        sa.CheckConstraint(
            "primary_link_id IS NULL OR primary_link_id = link_id",
            name="ck_link_teams_primary_link_id",
        ),
    )
    create_index("ix_link_teams_team", "link_teams", ["team_id", "link_id"])
    add_column("link_owners", sa.Column("through_team", sa.Boolean))


def _key(table: str, name: str, target: str) -> sa.Column[int]:
    """Return a column of a primary key that refers to another table."""
    foreign_key = sa.ForeignKey(target, name=f"fk_{table}_{name}")
    return sa.Column(name, sa.BigInteger, foreign_key, primary_key=True, autoincrement=False)


MAKE_MANAGERS_OWNERS = """
UPDATE link_owners SET primary_link_id = link_id
WHERE user_id = (
    SELECT MIN(m.user_id) FROM link_teams t JOIN team_members m ON m.team_id = t.team_id
    WHERE t.primary_link_id = link_owners.link_id AND m.role = 'manager'
)
"""


def _make_managers_owners(connection: sa.Connection) -> None:
    if sa.inspect(connection).has_table("link_teams"):
        connection.execute(sa.text(MAKE_MANAGERS_OWNERS))


def downgrade() -> None:
    """Keep the members of teams as owners of their links, and a manager as the primary one."""
    change_rows(_make_managers_owners)
    drop_column("link_owners", "through_team")
    drop_table("link_teams")
    drop_table("team_members")
    drop_table("teams")
