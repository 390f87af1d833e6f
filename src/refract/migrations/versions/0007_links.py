"""Links: owners, shares, tags, history, click totals, tombstones."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    _links()
    _people()
    create_table(
        "link_tags",
        _link_id("link_tags"),
        sa.Column(
            "tag_id",
            sa.BigInteger,
            sa.ForeignKey("tags.id", name="fk_link_tags_tag_id"),
            primary_key=True,
            autoincrement=False,
        ),
    )
    create_index("ix_link_tags_tag", "link_tags", ["tag_id", "link_id"])
    create_table(
        "link_history",
        _link_id("link_history"),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("actor_id", sa.BigInteger),
        sa.Column("as_admin", sa.Boolean, nullable=False),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("changes", sa.JSON, nullable=False),
        sa.Column("snapshot", sa.JSON, nullable=False),
        sa.CheckConstraint("version > 0", name="ck_link_history_version"),
    )
    create_table(
        "link_totals",
        sa.Column("link_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("total_clicks", sa.BigInteger, nullable=False),
        sa.Column("bot_clicks", sa.BigInteger, nullable=False),
        sa.Column("last_clicked_at", UtcDateTime),
    )
    create_index("ix_link_totals_total_clicks", "link_totals", ["total_clicks", "link_id"])
    create_index("ix_link_totals_last_clicked_at", "link_totals", ["last_clicked_at", "link_id"])
    create_table(
        "link_tombstones",
        sa.Column("link_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("purged_at", UtcDateTime, nullable=False),
    )


def _links() -> None:
    create_table(
        "links",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("destination", sa.String(2048), nullable=False),
        sa.Column("href", sa.Text, nullable=False),
        sa.Column("href_digest", text_key(32), nullable=False),
        sa.Column("destination_host", text_key(255), nullable=False),
        sa.Column("has_placeholders", sa.Boolean, nullable=False),
        sa.Column("title", sa.String(200)),
        sa.Column("notes", sa.Text),
        sa.Column("redirect_status", sa.SmallInteger, nullable=False),
        sa.Column("visibility", sa.String(10), nullable=False),
        sa.Column("forward_query", sa.Boolean, nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("disabled_by_admin", sa.Boolean, nullable=False),
        sa.Column("flagged", sa.Boolean, nullable=False),
        sa.Column("expires_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("deleted_at", UtcDateTime),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("search_text", sa.Text, nullable=False),
        sa.CheckConstraint(
            "status IN ('active', 'disabled', 'expired', 'deleted')", name="ck_links_status"
        ),
        sa.CheckConstraint(
            "visibility IN ('public', 'unlisted', 'secure')", name="ck_links_visibility"
        ),
        sa.CheckConstraint(
            "redirect_status IN (301, 302, 307, 308)", name="ck_links_redirect_status"
        ),
    )
    create_index("ix_links_status", "links", ["status", "id"])
    create_index("ix_links_expires_at", "links", ["status", "expires_at"])
    create_index("ix_links_deleted_at", "links", ["deleted_at"])
    create_index("ix_links_visibility", "links", ["visibility", "id"])
    create_index("ix_links_updated_at", "links", ["updated_at", "id"])
    create_index("ix_links_href_digest", "links", ["href_digest", "id"])
    create_index("ix_links_destination_host", "links", ["destination_host", "id"])


def _people() -> None:
    create_table(
        "link_owners",
        _link_id("link_owners"),
        _user_id("link_owners"),
        sa.Column("primary_link_id", sa.BigInteger),
        sa.Column("added_by", sa.BigInteger),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("primary_link_id", name="uq_link_owners_primary_link_id"),
        sa.CheckConstraint(
            "primary_link_id IS NULL OR primary_link_id = link_id",
            name="ck_link_owners_primary_link_id",
        ),
    )
    create_index("ix_link_owners_user", "link_owners", ["user_id", "link_id"])
    create_table(
        "link_shares",
        _link_id("link_shares"),
        _user_id("link_shares"),
        sa.Column("shared_by", sa.BigInteger),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    create_index("ix_link_shares_user", "link_shares", ["user_id", "link_id"])


def _link_id(table: str) -> sa.Column[int]:
    return sa.Column(
        "link_id",
        sa.BigInteger,
        sa.ForeignKey("links.id", name=f"fk_{table}_link_id"),
        primary_key=True,
        autoincrement=False,
    )


def _user_id(table: str) -> sa.Column[int]:
    return sa.Column(
        "user_id",
        sa.BigInteger,
        sa.ForeignKey("users.id", name=f"fk_{table}_user_id"),
        primary_key=True,
        autoincrement=False,
    )


def downgrade() -> None:
    for table in (
        "link_tombstones",
        "link_totals",
        "link_history",
        "link_tags",
        "link_shares",
        "link_owners",
        "links",
    ):
        drop_table(table)
