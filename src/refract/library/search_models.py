"""The words of items, as each database searches them."""

from typing import Any

from sqlalchemy import ForeignKey, Index, Text
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.types import TABLE_OPTIONS, Model, long_text


def search_column() -> Text:
    """Tokens: a `tsvector` on PostgreSQL, text under a full-text index elsewhere."""
    return long_text().with_variant(TSVECTOR(), "postgresql")


class ItemSearch(Model):
    """The tokens of an item, made by `core.words`. On SQLite triggers keep `item_search_fts` in step with it."""

    __tablename__ = "item_search"
    __table_args__ = (
        Index("ix_item_search_fts", "tokens", postgresql_using="gin", mysql_prefix="FULLTEXT").ddl_if(dialect=("postgresql", "mysql")),
        TABLE_OPTIONS,
    )

    item_id: Mapped[int] = mapped_column(ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    tokens: Mapped[Any] = mapped_column(search_column())
