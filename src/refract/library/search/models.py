"""The search index table."""

from typing import Any

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.full_text import TextSearchVector
from refract.core.db.types import Model, long_text


def token_column() -> Text:
    """Return the type of tokens: `tsvector` on PostgreSQL, indexed text elsewhere."""
    return long_text().with_variant(TextSearchVector(), "postgresql")


class ItemSearch(Model):
    """The tokens of an item, made by `core.words`.

    Migration 0015 creates an index for each database: GIN, FULLTEXT, and on SQLite
    `item_search_fts`, which triggers keep up to date.
    """

    __tablename__ = "item_search"

    item_id: Mapped[int] = mapped_column(
        ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    tokens: Mapped[Any] = mapped_column(token_column())
