"""Lists, their entries, the log of publishing and deleting, and their views and clicks."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    _lists()
    _entries()
    create_table(
        "list_actions",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("list_id", sa.BigInteger, nullable=False),
        sa.Column("event", sa.String(10), nullable=False),
        sa.Column("slug", text_key(40)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.CheckConstraint("event IN ('publish', 'delete')", name="ck_list_actions_event"),
    )
    create_index("ix_list_actions_list", "list_actions", ["list_id"])
    create_index("ix_list_actions_created_at", "list_actions", ["created_at"])
    create_table(
        "list_totals",
        sa.Column("target_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("total_clicks", sa.BigInteger, nullable=False),
        sa.Column("bot_clicks", sa.BigInteger, nullable=False),
        sa.Column("last_clicked_at", UtcDateTime),
    )


def _lists() -> None:
    create_table(
        "lists",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("owner_id", sa.BigInteger, sa.ForeignKey("users.id", name="fk_lists_owner_id")),
        sa.Column("creator_hash", text_key(64)),
        sa.Column("family_id", sa.BigInteger, nullable=False),
        sa.Column("edition", sa.Integer),
        sa.Column("title", sa.String(200)),
        sa.Column("description", sa.Text),
        sa.Column("slug", text_key(40)),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("search_text", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("published_at", UtcDateTime),
        sa.Column("deleted_at", UtcDateTime),
        sa.CheckConstraint("status IN ('draft', 'published')", name="ck_lists_status"),
        sa.UniqueConstraint("family_id", "edition", name="uq_lists_family_id_edition"),
    )
    create_index("ix_lists_owner", "lists", ["owner_id", "id"])
    create_index("ix_lists_creator", "lists", ["creator_hash", "id"])
    create_index("ix_lists_deleted_at", "lists", ["deleted_at"])
    create_index("ix_lists_untouched", "lists", ["status", "owner_id", "updated_at"])


def _entries() -> None:
    create_table(
        "list_entries",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "list_id",
            sa.BigInteger,
            sa.ForeignKey("lists.id", name="fk_list_entries_list_id"),
            nullable=False,
        ),
        sa.Column("link_id", sa.BigInteger),
        sa.Column("url", sa.String(2048), nullable=False),
        sa.Column("href", sa.Text, nullable=False),
        sa.Column("host", text_key(255), nullable=False),
        sa.Column("normalized_url", sa.Text, nullable=False),
        sa.Column("normalized_digest", text_key(32), nullable=False),
        sa.Column("title", sa.String(200)),
        sa.Column("description", sa.Text),
        sa.Column("image", sa.Text),
        sa.Column("title_by_hand", sa.Boolean, nullable=False),
        sa.Column("description_by_hand", sa.Boolean, nullable=False),
        sa.Column("fetch_status", sa.String(10), nullable=False),
        sa.Column("flagged", sa.Boolean, nullable=False),
        sa.Column("dangerous", sa.Boolean, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.CheckConstraint(
            "fetch_status IN ('pending', 'success', 'failed')", name="ck_list_entries_fetch_status"
        ),
    )
    create_index("ix_list_entries_position", "list_entries", ["list_id", "position"])
    create_index("ix_list_entries_fetch_status", "list_entries", ["list_id", "fetch_status"])
    create_index("ix_list_entries_normalized", "list_entries", ["list_id", "normalized_digest"])
    create_index("ix_list_entries_waiting", "list_entries", ["fetch_status", "id"])


def downgrade() -> None:
    for table in ("list_totals", "list_actions", "list_entries", "lists"):
        drop_table(table)
