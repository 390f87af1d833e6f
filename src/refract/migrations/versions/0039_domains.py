"""Domains, and names, links and lists on them."""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    change_rows,
    create_index,
    create_table,
    drop_column,
    drop_index,
    drop_table,
    sa,
    set_column_types,
    text_key,
)

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Rows that are there belong to the default domain: they stay as they are."""
    create_table(
        "domains",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("host", text_key(253), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("title", sa.String(80)),
        sa.Column("root_destination", sa.String(2048)),
        sa.Column("unknown_destination", sa.String(2048)),
        sa.Column("gone_destination", sa.String(2048)),
        sa.Column("default_redirect_status", sa.SmallInteger, nullable=False),
        sa.Column("creators", sa.String(16), nullable=False),
        sa.Column("team_id", sa.BigInteger, sa.ForeignKey("teams.id", name="fk_domains_team_id")),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("host", name="uq_domains_host"),
        sa.CheckConstraint("state IN ('active', 'disabled')", name="ck_domains_state"),
        sa.CheckConstraint(
            "creators IN ('everyone', 'team', 'administrators')", name="ck_domains_creators"
        ),
        sa.CheckConstraint(
            "default_redirect_status IN (301, 302, 307, 308)",
            name="ck_domains_default_redirect_status",
        ),
    )
    create_index("ix_domains_team", "domains", ["team_id"])
    _set_key_length(320)
    add_column("links", sa.Column("domain", text_key(253)))
    create_index("ix_links_domain", "links", ["domain", "id"])
    add_column("lists", sa.Column("domain", text_key(253)))
    create_index("ix_lists_domain", "lists", ["domain", "id"])


def _set_key_length(length: int) -> None:
    set_column_types("names", {"key": text_key(length), "name": text_key(length)})


def _delete_names(connection: sa.Connection) -> None:
    key: sa.ColumnClause[str] = sa.column("key")
    connection.execute(sa.delete(sa.table("names", key)).where(key.like("/%")))


def downgrade() -> None:
    """Keep links and lists; those on other domains lose their names there."""
    change_rows(_delete_names)
    drop_index("ix_lists_domain", "lists")
    drop_column("lists", "domain")
    drop_index("ix_links_domain", "links")
    drop_column("links", "domain")
    _set_key_length(64)
    drop_table("domains")
