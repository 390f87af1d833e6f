"""Indexes that keep lists and searches fast at any size, and the result of the last verification.

Owners' rows repeat what their links are filtered and sorted by. On SQLite, links get an index of
trigrams, which PostgreSQL has since revision 0015.
"""

from refract.migrations.steps import (
    UtcDateTime,
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_index,
    drop_table,
    op,
    sa,
)

revision = "0028"
down_revision = "0027"

COPIES = ("status", "visibility", "updated_at")


def upgrade() -> None:
    add_column("link_owners", sa.Column("status", sa.String(10)))
    add_column("link_owners", sa.Column("visibility", sa.String(10)))
    add_column("link_owners", sa.Column("updated_at", UtcDateTime))
    for name in COPIES:
        op.execute(
            f"UPDATE link_owners SET {name} = (SELECT links.{name} FROM links"  # noqa: S608 - fixed
            " WHERE links.id = link_owners.link_id)"
        )
        create_index(f"ix_link_owners_{name}", "link_owners", ["user_id", name, "link_id"])
    create_index("ix_link_owners_primary", "link_owners", ["user_id", "primary_link_id", "link_id"])
    drop_index("ix_tags_name_key", "tags")
    create_index("ix_tags_name", "tags", ["space", "name_key", "id"])
    create_table(
        "verifications",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        _index_trigrams()


def _index_trigrams() -> None:
    """Create the FTS5 index of trigrams; the text stays in the table, triggers update the index."""
    op.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS link_search_fts USING fts5(search_text,"
        " destination_host, content='links', content_rowid='id',"
        " tokenize='trigram case_sensitive 1', detail='none')"
    )
    removed = (
        "INSERT INTO link_search_fts (link_search_fts, rowid, search_text, destination_host)"
        " VALUES ('delete', old.id, old.search_text, old.destination_host);"
    )
    added = (
        "INSERT INTO link_search_fts (rowid, search_text, destination_host)"
        " VALUES (new.id, new.search_text, new.destination_host);"
    )
    for name, event, action in (
        ("added", "INSERT", added),
        ("removed", "DELETE", removed),
        ("changed", "UPDATE OF id, search_text, destination_host", removed + added),
    ):
        op.execute(
            f"CREATE TRIGGER IF NOT EXISTS link_search_{name} AFTER {event} ON links BEGIN"
            f" {action} END"
        )
    op.execute("INSERT INTO link_search_fts (link_search_fts) VALUES ('rebuild')")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for name in ("added", "removed", "changed"):
            op.execute(f"DROP TRIGGER IF EXISTS link_search_{name}")
        op.execute("DROP TABLE IF EXISTS link_search_fts")
    drop_table("verifications")
    create_index("ix_tags_name_key", "tags", ["space", "name_key"])
    drop_index("ix_tags_name", "tags")
    drop_index("ix_link_owners_primary", "link_owners")
    for name in COPIES:
        drop_index(f"ix_link_owners_{name}", "link_owners")
        drop_column("link_owners", name)
