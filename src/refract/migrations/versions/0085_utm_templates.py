"""UTM templates."""

from refract.migrations.steps import UtcDateTime, create_table, drop_table, sa, text_key

revision = "0085"
down_revision = "0081"

_PARAMETERS = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")


def upgrade() -> None:
    create_table(
        "utm_templates",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("user_id", sa.BigInteger, _owner_key("user")),
        sa.Column("team_id", sa.BigInteger, _owner_key("team")),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("name_key", text_key(200), nullable=False),
        *(sa.Column(name, sa.String(200)) for name in _PARAMETERS),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("user_id", "name_key", name="uq_utm_templates_user_id_name_key"),
        sa.UniqueConstraint("team_id", "name_key", name="uq_utm_templates_team_id_name_key"),
        sa.CheckConstraint("(user_id IS NULL) <> (team_id IS NULL)", name="ck_utm_templates_owner"),
    )


def _owner_key(owner: str) -> sa.ForeignKey:
    return sa.ForeignKey(f"{owner}s.id", ondelete="CASCADE", name=f"fk_utm_templates_{owner}_id")


def downgrade() -> None:
    drop_table("utm_templates")
