"""Search: one indexed column of tokens per item.

On PostgreSQL also trigrams, for parts of words and typing errors.
"""

from refract.migrations.steps import (
    create_index,
    create_table,
    create_trigram_index,
    drop_index,
    drop_table,
    long_text,
    op,
    sa,
)

revision = "0015"
down_revision = "0014"

TRIGRAMS = (
    ("ix_items_title_trigram", "items", "title"),
    ("ix_items_site_trigram", "items", "site"),
    ("ix_links_search_text_trigram", "links", "search_text"),
    ("ix_names_key_trigram", "names", "key"),
)


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    kind = sa.dialects.postgresql.TSVECTOR() if dialect == "postgresql" else long_text()
    create_table(
        "item_search",
        sa.Column(
            "item_id",
            sa.BigInteger,
            sa.ForeignKey("items.id", ondelete="CASCADE", name="fk_item_search_item_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("tokens", kind, nullable=False),
    )
    if dialect == "sqlite":
        _shadow()
    elif dialect == "postgresql":
        create_index("ix_item_search_fts", "item_search", ["tokens"], postgresql_using="gin")
        for name, table, column in TRIGRAMS:
            create_trigram_index(name, table, column)
    else:
        create_index("ix_item_search_fts", "item_search", ["tokens"], mysql_prefix="FULLTEXT")


def _shadow() -> None:
    """Create the FTS5 index; the words stay in the table, and triggers update the index.

    Prefixes of one to six letters (after the mark of two) have their own indexes: without one, FTS5
    collects every row of every word with that prefix before it returns the first. Longer words are
    rare.
    """
    op.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS item_search_fts USING fts5(tokens,"
        " content='item_search', content_rowid='item_id', tokenize='ascii', detail='none',"
        " prefix='3 4 5 6 7 8')"
    )
    gone = (
        "INSERT INTO item_search_fts (item_search_fts, rowid, tokens) VALUES ('delete',"
        " old.item_id, old.tokens);"
    )
    come = "INSERT INTO item_search_fts (rowid, tokens) VALUES (new.item_id, new.tokens);"
    for name, when, what in (
        ("added", "INSERT", come),
        ("removed", "DELETE", gone),
        ("changed", "UPDATE", gone + come),
    ):
        op.execute(
            f"CREATE TRIGGER IF NOT EXISTS item_search_{name} AFTER {when} ON item_search BEGIN"
            f" {what} END"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE IF EXISTS item_search_fts")
    if op.get_bind().dialect.name == "postgresql":
        for name, table, _column in TRIGRAMS:
            drop_index(name, table)
    drop_table("item_search")
