"""The library.

Items, fetched pages, suggestions, aliases and changes of personal tags, rules, undo, quota and
ledger.
"""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    long_text,
    sa,
    text_key,
)

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    _items()
    _pages()
    _suggestions()
    _undo()
    _item_tags()
    _aliases()
    _rules()
    _changes()
    _changed_items()
    _quota()


def _items() -> None:
    create_table(
        "items",
        _id(),
        _user_id("items"),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("url", sa.String(2048)),
        sa.Column("url_digest", text_key(32)),
        sa.Column("canonical_digest", text_key(32)),
        sa.Column("site", text_key(255)),
        sa.Column("title", sa.String(255)),
        sa.Column("title_source", sa.String(10)),
        sa.Column("summary", sa.Text),
        sa.Column("summary_source", sa.String(10)),
        sa.Column("type", sa.String(10), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("pending", sa.Boolean, nullable=False),
        sa.Column("enrichment", sa.String(10)),
        sa.Column("note", sa.String(30)),
        sa.Column("failure", sa.String(300)),
        sa.Column("job_id", sa.BigInteger),
        sa.Column("charged_job_id", sa.BigInteger),
        sa.Column("import_id", sa.BigInteger),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("confirmed_at", UtcDateTime),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.CheckConstraint(
            "status IN ('ENRICHING', 'READY_TO_CONFIRM', 'ARCHIVED', 'DISCARDED', 'FAILED')",
            name="ck_items_status",
        ),
        sa.CheckConstraint("type IN ('NOTE', 'ARTICLE')", name="ck_items_type"),
        sa.CheckConstraint(
            "enrichment IS NULL OR enrichment IN ('AI', 'SYSTEM', 'MANUAL')",
            name="ck_items_enrichment",
        ),
    )
    create_index("ix_items_pending", "items", ["user_id", "pending", "id"])
    create_index("ix_items_library", "items", ["user_id", "status", "confirmed_at", "id"])
    create_index("ix_items_type", "items", ["user_id", "status", "type", "confirmed_at", "id"])
    create_index("ix_items_url_digest", "items", ["user_id", "url_digest"])
    create_index("ix_items_canonical_digest", "items", ["user_id", "canonical_digest"])
    create_index("ix_items_import_id", "items", ["import_id"])


def _pages() -> None:
    create_table(
        "item_pages",
        _item_id("item_pages", primary=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("canonical_url", sa.Text),
        sa.Column("title", sa.String(255)),
        sa.Column("description", sa.Text),
        sa.Column("author", sa.String(255)),
        sa.Column("site", sa.String(255)),
        sa.Column("language", sa.String(10)),
        sa.Column("published_at", UtcDateTime),
        sa.Column("image_url", sa.Text),
        sa.Column("keywords", sa.JSON, nullable=False),
        sa.Column("text", long_text(), nullable=False),
        sa.Column("html", long_text(), nullable=False),
        sa.Column("fetched_at", UtcDateTime, nullable=False),
    )


def _suggestions() -> None:
    create_table(
        "item_tag_suggestions",
        _id(),
        _user_id("item_tag_suggestions"),
        _item_id("item_tag_suggestions"),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("normalised_name", text_key(200), nullable=False),
        sa.Column("source", sa.String(10), nullable=False),
        sa.Column("confidence", sa.Double, nullable=False),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("reviewed_at", UtcDateTime),
        sa.UniqueConstraint(
            "item_id", "normalised_name", name="uq_item_tag_suggestions_item_id_normalised_name"
        ),
        sa.CheckConstraint(
            "status IN ('PENDING', 'ACCEPTED', 'REJECTED')", name="ck_item_tag_suggestions_status"
        ),
        sa.CheckConstraint("source IN ('AI', 'SYSTEM')", name="ck_item_tag_suggestions_source"),
    )
    create_index(
        "ix_item_tag_suggestions_user",
        "item_tag_suggestions",
        ["user_id", "status", "normalised_name"],
    )


def _undo() -> None:
    create_table(
        "item_undo",
        _item_id("item_undo", primary=True),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("before", sa.JSON, nullable=False),
    )


def _item_tags() -> None:
    create_table(
        "item_tags",
        _item_id("item_tags", primary=True),
        _tag_id("item_tags", primary=True),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    create_index("ix_item_tags_tag", "item_tags", ["tag_id", "item_id"])


def _aliases() -> None:
    create_table(
        "tag_aliases",
        sa.Column("space", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("key", text_key(200), primary_key=True),
        _tag_id("tag_aliases"),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
    )
    create_index("ix_tag_aliases_tag", "tag_aliases", ["tag_id"])


def _rules() -> None:
    create_table(
        "tag_rules",
        _id(),
        _user_id("tag_rules"),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("pattern", sa.String(255), nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.UniqueConstraint("user_id", "position", name="uq_tag_rules_user_id_position"),
    )


def _changes() -> None:
    create_table(
        "tag_changes",
        _id(),
        _user_id("tag_changes"),
        _tag_id("tag_changes"),
        sa.Column("action", sa.String(10), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("undone_at", UtcDateTime),
        sa.Column("details", sa.JSON, nullable=False),
        sa.CheckConstraint("action IN ('merge', 'delete')", name="ck_tag_changes_action"),
    )
    create_index("ix_tag_changes_tag", "tag_changes", ["tag_id", "id"])
    create_index("ix_tag_changes_user", "tag_changes", ["user_id", "id"])


def _changed_items() -> None:
    create_table(
        "tag_change_items",
        sa.Column(
            "change_id",
            sa.BigInteger,
            sa.ForeignKey(
                "tag_changes.id", ondelete="CASCADE", name="fk_tag_change_items_change_id"
            ),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("tag_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("item_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("had_target", sa.Boolean, nullable=False),
        sa.Column("tagged_at", UtcDateTime, nullable=False),
    )


def _quota() -> None:
    create_table(
        "quota_days",
        _user_id("quota_days", primary=True),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("limit_override", sa.BigInteger),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.CheckConstraint("used >= 0", name="ck_quota_days_used"),
    )
    create_table(
        "usage_ledger",
        _id(),
        _user_id("usage_ledger"),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("action", sa.String(50), nullable=False),
        sa.Column("job_id", sa.BigInteger, nullable=False),
        sa.Column("item_id", sa.BigInteger, nullable=False),
        sa.Column("units", sa.BigInteger, nullable=False),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("reason", sa.String(50)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("job_id", "kind", name="uq_usage_ledger_job_id_kind"),
        sa.CheckConstraint("kind IN ('charge', 'refund')", name="ck_usage_ledger_kind"),
    )
    create_index("ix_usage_ledger_user", "usage_ledger", ["user_id", "day", "id"])


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False)


def _user_id(table: str, *, primary: bool = False) -> sa.Column[int]:
    return _reference(table, "user_id", "users.id", primary=primary)


def _item_id(table: str, *, primary: bool = False) -> sa.Column[int]:
    return _reference(table, "item_id", "items.id", primary=primary)


def _tag_id(table: str, *, primary: bool = False) -> sa.Column[int]:
    return _reference(table, "tag_id", "tags.id", primary=primary)


def _reference(table: str, column: str, target: str, *, primary: bool) -> sa.Column[int]:
    key = sa.ForeignKey(target, ondelete="CASCADE", name=f"fk_{table}_{column}")
    return sa.Column(
        column, sa.BigInteger, key, primary_key=primary, nullable=False, autoincrement=False
    )


def downgrade() -> None:
    tables = (
        "usage_ledger", "quota_days", "tag_change_items", "tag_changes", "tag_rules", "tag_aliases",
        "item_tags", "item_undo", "item_tag_suggestions", "item_pages", "items",
    )  # fmt: skip
    for table in tables:
        drop_table(table)
